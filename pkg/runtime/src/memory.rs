//! Allocator of operator-controller and catalogd, and the return of freed memory to the system.

use std::{thread, time::Duration};

use parking_lot::Mutex;
use tikv_jemalloc_ctl::{Access as _, AsName as _, Result};
pub use tikv_jemallocator::Jemalloc;

use crate::parsing;

/// Decay time of the only arena, in milliseconds; see `.cargo/config.toml`.
const DECAY: &[u8] = b"arena.0.dirty_decay_ms\0";
/// Configured decay time, in milliseconds.
const CONFIGURED: &[u8] = b"arenas.dirty_decay_ms\0";

/// Interval between two purges of a program at rest.
const PURGE_INTERVAL: Duration = Duration::from_secs(10);

/// Number of large texts that are being parsed.
static LARGE_TEXTS: Mutex<u32> = Mutex::new(0);

/// Returns freed pages to the system at once while a large text is parsed, and after the decay time otherwise.
///
/// The freed pages of many small values do not fit the large buffers of the next file, so within the decay time the files
/// of a bundle, and the bundles that are parsed in turn, would add up. Without large texts, the decay time saves
/// processor time.
pub fn purge_while_parsing() {
    parsing::set_large_text_hooks(begin, end);
}

/// Returns freed pages to the system every ten seconds, on a thread of its own.
///
/// jemalloc counts the decay time only while the program allocates, so a program at rest would keep what it freed last:
/// 101 MiB instead of 48 MiB after a restart with two hundred extensions.
pub fn purge_at_rest() {
    let purges = || {
        loop {
            thread::sleep(PURGE_INTERVAL);
            purge();
        }
    };
    if let Err(error) = thread::Builder::new().name("purge".to_owned()).spawn(purges) {
        tracing::warn!(%error, "freed memory is not returned while the program is at rest");
    }
}

fn purge() {
    let texts = LARGE_TEXTS.lock();
    // While a large text is parsed, freed pages go back at once.
    if *texts == 0 {
        set_decay(CONFIGURED.name().read());
    }
}

fn begin() {
    let mut texts = LARGE_TEXTS.lock();
    *texts += 1;
    if *texts == 1 {
        set_decay(Ok(0));
    }
}

fn end() {
    let mut texts = LARGE_TEXTS.lock();
    *texts = texts.saturating_sub(1);
    if *texts == 0 {
        set_decay(CONFIGURED.name().read());
    }
}

/// Sets the decay time. Also returns all freed pages to the system now, see jemalloc(3).
fn set_decay(milliseconds: Result<isize>) {
    if let Err(error) = milliseconds.and_then(|milliseconds| DECAY.name().write(milliseconds)) {
        tracing::debug!(%error, "the decay time of freed memory cannot be changed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_kept_for_no_time_while_any_large_text_is_parsed() {
        let decay = || DECAY.name().read();
        let configured: Result<isize> = CONFIGURED.name().read();
        assert_eq!(
            (decay(), configured),
            (configured, Ok(1000)),
            ".cargo/config.toml sets a second"
        );
        begin();
        begin();
        purge();
        assert_eq!(decay(), Ok(0));
        end();
        assert_eq!(decay(), Ok(0));
        end();
        assert_eq!(decay(), configured);
    }
}
