//! Readers, writers, the garbage collector and the checker in interleavings that a scheduler chooses, with a disk that may stop.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Arc,
};

use parking_lot::Mutex;
use shuttle::{
    Config, Runner, future,
    rand::{Rng as _, thread_rng},
    scheduler::{PctScheduler, RandomScheduler},
    thread,
};

use crate::{
    disk::{self, EIO, Refusal},
    histories::{A, B, C, Lab, Served, Step, catalog, served, whole},
    storage::{StorageError, Store},
};

/// Number of threads that change the store, each once, and of threads that read it.
const WRITERS: usize = 3;
const READERS: usize = 2;
/// Number of reads of one reader.
const READS: usize = 3;
/// Highest number of system calls after which the disk stops.
const CALLS: usize = 60;
/// Number of scheduling decisions that a priority schedule changes.
const DEPTH: usize = 3;

thread_local! {
    /// True on threads that the scheduler controls. The threads that compress content are not controlled: they share nothing else.
    static CONTROLLED: Cell<bool> = const { Cell::new(false) };
}

/// Lets the scheduler choose the next thread.
pub(crate) fn step() {
    if CONTROLLED.get() {
        thread::yield_now();
    }
}

/// Runs schedules with the seeds from `seed` on: `count` random ones, and a quarter as many by priorities. Returns the number of schedules,
/// and the seeds that fail, each with its reason.
pub(crate) fn run(seed: u64, count: usize) -> (usize, Vec<(String, String)>) {
    let mut config = Config::new();
    config.stack_size = 1024 * 1024;
    let mut failures = Vec::new();
    let mut attempt = |name: String, run: &dyn Fn()| {
        let outcome = panic::catch_unwind(AssertUnwindSafe(run));
        CONTROLLED.set(false);
        disk::finish();
        if let Err(cause) = outcome {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
            failures.push((name, text.unwrap_or("the schedule panics").to_owned()));
        }
    };
    for seed in (seed..).take(count) {
        attempt(format!("random schedule {seed}"), &|| {
            let scheduler = RandomScheduler::new_from_seed(seed, 1);
            Runner::new(scheduler, config.clone()).run(scenario);
        });
    }
    attempt(format!("priority schedules {seed}"), &|| {
        let scheduler = PctScheduler::new_from_seed(seed, DEPTH, count / 4);
        Runner::new(scheduler, config.clone()).run(scenario);
    });
    (count + count / 4, failures)
}

/// Contents in the order in which they replaced each other.
type Order = Arc<Mutex<Vec<Served>>>;

/// One schedule.
fn scenario() {
    CONTROLLED.set(false);
    let lab = Arc::new(Lab::new());
    let root = lab.root();
    let store = Arc::new(Store::open(&root).unwrap());
    lab.take(&store, A).unwrap();
    let order: Order = Arc::new(Mutex::new(vec![served(&store).unwrap()]));
    let power_fails = thread_rng().gen_bool(0.5);
    disk::refuse(power_fails.then(|| Refusal {
        from: thread_rng().gen_range(0..CALLS),
        once: false,
        errno: EIO,
    }));
    let steps: Vec<Step> = (0..WRITERS).map(|_| choose()).collect();
    let removes = steps.iter().any(|step| !step.is_durable());

    CONTROLLED.set(true);
    let writers = steps.into_iter().map(|step| {
        let (lab, store, order) = (lab.clone(), store.clone(), order.clone());
        thread::spawn(move || write(&lab, &store, step, &order))
    });
    let readers = (0..READERS).map(|_| {
        let store = store.clone();
        thread::spawn(move || read(&store))
    });
    let (writers, readers): (Vec<_>, Vec<_>) = (writers.collect(), readers.collect());
    for writer in writers {
        writer.join().unwrap();
    }
    let seen: Vec<Vec<Served>> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    CONTROLLED.set(false);

    let order = order.lock().clone();
    for seen in seen {
        assert!(
            in_order(&seen, &order),
            "a reader sees {seen:?}, but the order is {order:?}"
        );
    }
    let left = served(&store).unwrap();
    disk::refuse(None);
    restart(&root, &left, &order, power_fails, removes);
}

/// Chooses a change.
fn choose() -> Step {
    let steps = [B, C, Step::Origin("v2"), Step::Remove, Step::Discard];
    steps[thread_rng().gen_range(0..steps.len())]
}

/// Changes the store as its callers do: with the lock of the catalog, for which only the garbage collector does not wait.
fn write(lab: &Lab, store: &Store, step: Step, order: &Order) {
    let guard = match step {
        Step::Discard => {
            // The checker reads before it has the lock.
            let Some(checked) = store.get(&catalog()) else {
                return;
            };
            let guard = future::block_on(store.lock(&catalog()));
            if store.discard_damaged(&catalog(), &checked, &StorageError::Interrupted) {
                order.lock().push(None);
            }
            return drop(guard);
        }
        Step::Remove => store.try_lock(&catalog()),
        _ => Some(future::block_on(store.lock(&catalog()))),
    };
    if let Some(_guard) = guard {
        // A disk that stops makes errors; what is served counts.
        let _ = lab.take(store, step);
        order.lock().push(served(store).unwrap());
    }
}

/// Reads the store a few times. Content that a reader holds stays whole while others replace or remove it.
fn read(store: &Store) -> Vec<Served> {
    let mut seen = Vec::new();
    for _ in 0..READS {
        let held = store.get(&catalog());
        let before = held.as_ref().map(|held| whole(held).unwrap());
        step();
        step();
        assert_eq!(before, held.as_ref().map(|held| whole(held).unwrap()));
        seen.push(before);
    }
    seen
}

/// Returns whether contents are seen in the order in which they replaced each other. Some may be missed, or seen twice.
fn in_order(seen: &[Served], order: &[Served]) -> bool {
    let mut rest = order;
    for seen in seen {
        let Some(at) = rest.iter().position(|content| content == seen) else {
            return false;
        };
        rest = &rest[at..];
    }
    true
}

/// A restart serves the content that was served. If the disk stopped, it may serve former or newer content, but whole.
fn restart(root: &Path, left: &Served, order: &[Served], stopped: bool, removes: bool) {
    let found = served(&Store::open(root).unwrap()).unwrap();
    if stopped {
        // A change that fails may be on the disk nevertheless: another reference of known content, or new content.
        let known = found.is_none()
            || order.contains(&found)
            || found.as_ref().is_some_and(|found| {
                [A, B, C]
                    .iter()
                    .any(|step| found.contains(&format!("@sha256:{} ", step.digest())))
            });
        assert!(
            known,
            "after the disk stopped, {found:?} is served, none of {order:?}"
        );
        assert!(
            found.is_some() || removes,
            "the disk stopped, and the content is lost"
        );
    } else {
        assert_eq!(
            &found, left,
            "a restart serves other content; the order is {order:?}"
        );
    }
}
