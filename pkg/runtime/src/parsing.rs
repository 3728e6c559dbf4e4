//! A gate in front of the parsers of foreign documents: at most two are parsed at once in a process, a large one alone.
//!
//! A document's values take many times the memory of its text. Its limits bound one document; the gate bounds them all.
//! Turns are given in the order of arrival. To wait blocks the thread: it is for threads that may block.

use parking_lot::{Condvar, Mutex};

/// Documents that are parsed at the same time.
const AT_ONCE: u64 = 2;
/// Texts longer than this are parsed alone, in bytes.
const LARGE: u64 = 1 << 20;

static GATE: Gate = Gate::new(AT_ONCE);

/// A turn to parse, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    gate: &'a Gate,
    room: u64,
}

/// Waits for a turn to parse documents of `bytes` of text together.
pub fn turn(bytes: u64) -> Turn<'static> {
    GATE.enter(if bytes > LARGE { AT_ONCE } else { 1 })
}

#[derive(Debug)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: u64,
    /// Number of the next who comes, and of the next who is let in.
    arriving: u64,
    entering: u64,
}

impl Gate {
    const fn new(size: u64) -> Self {
        Self {
            state: Mutex::new(State {
                free: size,
                arriving: 0,
                entering: 0,
            }),
            changed: Condvar::new(),
        }
    }

    fn enter(&self, room: u64) -> Turn<'_> {
        let mut state = self.state.lock();
        let number = state.arriving;
        state.arriving += 1;
        while state.entering != number || state.free < room {
            self.changed.wait(&mut state);
        }
        state.entering += 1;
        state.free -= room;
        drop(state);
        // The next one may fit in, too.
        self.changed.notify_all();
        Turn { gate: self, room }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gate.state.lock().free += self.room;
        self.gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn never_more_than_fit_in() {
        let gate = Gate::new(2);
        let (inside, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for number in 0..16 {
                let (gate, inside, most) = (&gate, &inside, &most);
                scope.spawn(move || {
                    for round in 0..50 {
                        let room = 1 + (number + round) % 2;
                        let _turn = gate.enter(room);
                        let now = inside.fetch_add(room, Ordering::SeqCst) + room;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(room, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_large_one_is_not_overtaken_for_ever() {
        let gate = Gate::new(2);
        let small = gate.enter(1);
        thread::scope(|scope| {
            let large = scope.spawn(|| drop(gate.enter(2)));
            while gate.state.lock().arriving < 2 {
                thread::yield_now();
            }
            let next = scope.spawn(|| drop(gate.enter(1)));
            while gate.state.lock().arriving < 3 {
                thread::yield_now();
            }
            assert_eq!(
                gate.state.lock().entering,
                1,
                "the small one waits behind the large one"
            );
            drop(small);
            large.join().unwrap();
            next.join().unwrap();
        });
    }
}
