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

/// Time after which a thread for blocking work ends if there is none; ten seconds are tokio's default.
///
/// Each holds some 150 kB of stack and of the allocator's cache, and twenty of them are left when many extensions roll out.
pub const IDLE_THREAD: Duration = Duration::from_secs(1);

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
/// 73 to 101 MiB instead of 53 MiB after a restart with two hundred extensions.
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
    // While a large text is parsed, the decay time is 0 anyway.
    if *texts == 0 {
        set_decay(Ok(0));
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

/// Sets the decay time. A decay time of 0 also returns all freed pages to the system now; another one restarts the decay.
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
        returns_freed_pages();
    }

    /// Not a test of its own: tests run side by side, and a purge changes the decay time for a moment.
    fn returns_freed_pages() {
        // Elsewhere this test allocates with libc's allocator.
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return;
        }
        let resident_kib = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmRSS:"));
            let number = line.and_then(|line| line.split_whitespace().nth(1));
            number.unwrap().parse::<u64>().unwrap()
        };
        let chunks: Vec<Vec<u8>> = (0..1024).map(|_| vec![1; 64 << 10]).collect();
        let peak = resident_kib();
        drop(std::hint::black_box(chunks));
        purge();
        let left = resident_kib();
        assert!(left + (48 << 10) < peak, "{left} of {peak} KiB are left");
    }
}
