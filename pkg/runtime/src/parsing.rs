//! Limit on concurrent parsing of foreign documents: at most two per process, a large one alone.
//!
//! Parsed values need many times the memory of their text. Limits per document bound one of them; this limit bounds
//! their sum. Permits are granted in the order of arrival. Waiting blocks the thread, so callers run on blocking
//! threads.

use std::sync::OnceLock;

use parking_lot::{Condvar, Mutex};

/// Maximum number of documents that are parsed at the same time.
const MAX_CONCURRENT: u64 = 2;
/// Length in bytes above which a text is parsed alone.
const LARGE_TEXT: u64 = 1 << 20;

/// Length in bytes above which the hooks run.
const HOOKED_TEXT: u64 = 1 << 18;

static LIMITER: Limiter = Limiter::new(MAX_CONCURRENT);
/// See [`set_large_text_hooks`].
static HOOKS: OnceLock<Hooks> = OnceLock::new();

#[derive(Clone, Copy, Debug)]
struct Hooks {
    begin: fn(),
    end: fn(),
}

/// Permission to parse, until it is dropped. Values that were parsed are dropped before.
#[derive(Debug)]
pub struct Permit<'a> {
    limiter: &'a Limiter,
    weight: u64,
    /// Runs before the next document is parsed.
    end: Option<fn()>,
}

/// Waits for permission to parse documents with `bytes` of text in total.
pub fn acquire(bytes: u64) -> Permit<'static> {
    let mut permit = LIMITER.acquire(if bytes > LARGE_TEXT { MAX_CONCURRENT } else { 1 });
    if let Some(hooks) = HOOKS.get().filter(|_| bytes > HOOKED_TEXT) {
        (hooks.begin)();
        permit.end = Some(hooks.end);
    }
    permit
}

/// Sets the functions that run before and after a text of more than 256 KiB is parsed, once per process.
pub fn set_large_text_hooks(begin: fn(), end: fn()) {
    let _ = HOOKS.set(Hooks { begin, end });
}

#[derive(Debug)]
struct Limiter {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// Ticket numbers of the next arrival and of the next admission.
    next_ticket: u64,
    admitted: u64,
}

impl Limiter {
    const fn new(size: u64) -> Self {
        Self {
            state: Mutex::new(State {
                free: size,
                next_ticket: 0,
                admitted: 0,
            }),
            changed: Condvar::new(),
        }
    }

    fn acquire(&self, weight: u64) -> Permit<'_> {
        let mut state = self.state.lock();
        let number = state.next_ticket;
        state.next_ticket += 1;
        while state.admitted != number || state.free < weight {
            self.changed.wait(&mut state);
        }
        state.admitted += 1;
        state.free -= weight;
        drop(state);
        // Another waiter may fit as well.
        self.changed.notify_all();
        Permit {
            limiter: self,
            weight,
            end: None,
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            end();
        }
        self.limiter.state.lock().free += self.weight;
        self.limiter.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn the_limit_is_never_exceeded() {
        let limiter = Limiter::new(2);
        let (current, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for number in 0..16 {
                let (limiter, current, peak) = (&limiter, &current, &peak);
                scope.spawn(move || {
                    for round in 0..50 {
                        let weight = 1 + (number + round) % 2;
                        let _permit = limiter.acquire(weight);
                        let now = current.fetch_add(weight, Ordering::SeqCst) + weight;
                        peak.fetch_max(now, Ordering::SeqCst);
                        thread::yield_now();
                        current.fetch_sub(weight, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(peak.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn hooks_run_around_large_texts() {
        static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());
        set_large_text_hooks(|| CALLS.lock().push("begin"), || CALLS.lock().push("end"));
        drop(acquire(HOOKED_TEXT));
        assert!(CALLS.lock().is_empty());
        let permit = acquire(HOOKED_TEXT + 1);
        assert_eq!(*CALLS.lock(), ["begin"]);
        drop(permit);
        assert_eq!(*CALLS.lock(), ["begin", "end"]);
    }

    #[test]
    fn a_large_document_is_not_starved() {
        let limiter = Limiter::new(2);
        let small = limiter.acquire(1);
        thread::scope(|scope| {
            let large = scope.spawn(|| drop(limiter.acquire(2)));
            while limiter.state.lock().next_ticket < 2 {
                thread::yield_now();
            }
            let next = scope.spawn(|| drop(limiter.acquire(1)));
            while limiter.state.lock().next_ticket < 3 {
                thread::yield_now();
            }
            assert_eq!(
                limiter.state.lock().admitted,
                1,
                "the small one waits behind the large one"
            );
            drop(small);
            large.join().unwrap();
            next.join().unwrap();
        });
    }
}
