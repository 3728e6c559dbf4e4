//! Allocator of the controllers, and the return of freed memory to the system.

use tikv_jemalloc_ctl::{Access as _, AsName as _};
pub use tikv_jemallocator::Jemalloc;

use crate::parsing;

/// Decay time of the only arena, see `.cargo/config.toml`.
const DECAY: &[u8] = b"arena.0.dirty_decay_ms\0";

/// Makes every [`parsing::Permit`] of a large document return the memory of its values to the system when it is dropped.
///
/// The pages of many small values do not fit the large buffers of the next document. Within the decay time, the documents
/// that controllers parse in turn would add up.
pub fn purge_after_parsing() {
    parsing::set_purge(purge);
}

/// Purges all unused pages.
fn purge() {
    // jemalloc purges when the time is set, even to its present value (jemalloc(3)).
    let purged = DECAY
        .name()
        .read()
        .and_then(|time: isize| DECAY.name().write(time));
    if let Err(error) = purged {
        tracing::debug!(%error, "freed memory is returned to the system later");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arena_can_be_purged() {
        let time: isize = DECAY.name().read().unwrap();
        DECAY.name().write(time).unwrap();
        assert_eq!(DECAY.name().read(), Ok(time));
    }
}
