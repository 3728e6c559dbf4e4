//! Sequences by the seeds' sorts, the workers that run them, and repetitions of what depends on a race.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use parking_lot::Mutex;

use crate::found::{Found, WATCH};
use crate::rights::Rights;
use crate::run::{Difference, Pair};
use crate::step::Step;
use crate::watch::Watch;
use crate::{crds, generate, settle};

/// One of this number of sequences waits for the garbage collector and the namespace controller.
const SETTLING: u64 = 50;
/// Place of the sequence of a user with few rights among as many sequences.
const RIGHTS: u64 = 25;
/// Place of the life of a CRD among as many sequences.
const CRDS: (u64, u64) = (130, 250);
/// Number of differences after which a run ends.
const ENOUGH: usize = 20;
/// Repetitions of a sequence with a difference whose outcome depends on the timing of the real controllers or authorizer.
const REPETITIONS: usize = 40;
/// Repetitions of any other sequence with a difference: its outcome depends on time only if a second ends between two answers.
const PLAIN_REPETITIONS: usize = 3;

/// Errors of a sequence, such as timeouts on a busy machine, before one ends the run.
const ERRORS: usize = 3;

/// Sort of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Requests of an administrator, and a watch of them.
    Plain,
    /// Requests of a user with few rights.
    Rights,
    /// Deletions after which the controllers come to rest.
    Settling,
    /// Life of a CRD, with rests of the controllers.
    Crd,
}

impl Sort {
    fn of(seed: u64) -> Self {
        if seed.is_multiple_of(SETTLING) {
            Self::Settling
        } else if seed % CRDS.1 == CRDS.0 {
            Self::Crd
        } else if seed % SETTLING == RIGHTS {
            Self::Rights
        } else {
            Self::Plain
        }
    }

    /// Returns true for a sequence that spends its time waiting for controllers. Such sequences have workers of their own.
    fn waits(self) -> bool {
        matches!(self, Self::Settling | Self::Crd)
    }
}

/// Seeds that the workers of a group take in turns.
#[derive(Debug)]
pub(crate) struct Queue {
    next: AtomicU64,
    end: u64,
    waiting: bool,
}

impl Queue {
    /// Returns a queue of the sequences that wait for controllers, or of all others.
    pub(crate) fn of(seeds: &Range<u64>, waiting: bool) -> Self {
        Self {
            next: AtomicU64::new(seeds.start),
            end: seeds.end,
            waiting,
        }
    }

    /// Takes the next seed that is not done.
    fn take(&self, found: &Mutex<Found>) -> Option<u64> {
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end {
                return None;
            }
            if Sort::of(seed).waits() == self.waiting && !found.lock().progress.is_done(seed) {
                return Some(seed);
            }
        }
    }
}

/// Runs sequences of a queue until it is empty or the run has found enough differences.
pub(crate) async fn work(pair: Pair, found: &Mutex<Found>, queue: &Queue) -> Result<()> {
    loop {
        if found.lock().failed >= ENOUGH {
            return Ok(());
        }
        let Some(seed) = queue.take(found) else {
            return Ok(());
        };
        let sequence = Sequence::of(seed);
        let Some(difference) = sequence.tried(&pair).await? else {
            found.lock().pass(seed, sequence.names(), false)?;
            continue;
        };
        if sequence.repeated(&pair).await? {
            let lines = sequence.trace(&difference);
            found.lock().vary(seed, &lines, sequence.names())?;
            continue;
        }
        let lines = sequence.shrunk(&pair, difference).await?;
        found.lock().fail(seed, lines)?;
    }
}

/// Sequence of a seed.
struct Sequence {
    sort: Sort,
    steps: Vec<Step>,
    watch: Option<Watch>,
    rights: Option<Rights>,
}

impl Sequence {
    fn of(seed: u64) -> Self {
        let sort = Sort::of(seed);
        let mut rights = None;
        let steps = match sort {
            Sort::Plain => generate::sequence(seed),
            Sort::Rights => rights.insert(Rights::of(seed)).steps(),
            Sort::Settling => settle::sequence(seed),
            Sort::Crd => crds::sequence(seed),
        };
        let watched = sort == Sort::Plain && seed.is_multiple_of(4);
        Self {
            sort,
            steps,
            watch: watched.then(|| Watch::of(seed, generate::kinds(seed)[0])),
            rights,
        }
    }

    /// Returns the names of the requests, for counts.
    fn names(&self) -> Vec<String> {
        let watch = self.watch.iter().map(|_| WATCH.to_owned());
        self.steps.iter().map(Step::name).chain(watch).collect()
    }

    /// Runs the sequence on both servers and returns the first difference.
    async fn run(&self, pair: &Pair) -> Result<Option<Difference>> {
        let all = |lines: Vec<String>| {
            let at = self.steps.len().saturating_sub(1);
            (!lines.is_empty()).then_some(Difference { at, lines })
        };
        match (self.sort, &self.rights) {
            (Sort::Settling, _) => Ok(all(pair.settle(&self.steps).await?)),
            (Sort::Crd, _) => Ok(all(pair.life_of_crd(&self.steps).await?)),
            (_, Some(rights)) => pair.rights(rights).await,
            _ => pair.run(&self.steps, self.watch.as_ref()).await,
        }
    }

    /// Runs the sequence again if kube-apiserver does not answer in time. An error is no answer that could be compared.
    async fn tried(&self, pair: &Pair) -> Result<Option<Difference>> {
        for _ in 0..ERRORS {
            match self.run(pair).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => eprintln!("a sequence runs again: {error:#}"),
            }
        }
        self.run(pair).await
    }

    /// Repeats a sequence with a difference, and returns true as soon as both servers agree. Workers of the real garbage
    /// collector run at once, and the real authorizer can still know the rights of the sequence before, so one sequence can
    /// have several outcomes there.
    async fn repeated(&self, pair: &Pair) -> Result<bool> {
        let times = if self.sort == Sort::Plain {
            PLAIN_REPETITIONS
        } else {
            REPETITIONS
        };
        for _ in 0..times {
            if self.tried(pair).await?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Describes the requests up to a difference, and the difference.
    fn trace(&self, difference: &Difference) -> Vec<String> {
        trace(self.steps.iter().take(difference.at + 1), difference)
    }

    /// Drops requests that the difference does not need, and describes the rest.
    async fn shrunk(&self, pair: &Pair, mut difference: Difference) -> Result<Vec<String>> {
        if self.sort != Sort::Plain {
            return Ok(self.trace(&difference));
        }
        let mut steps = self.steps.clone();
        steps.truncate(difference.at + 1);
        let mut at = steps.len().saturating_sub(1);
        while at > 0 {
            at -= 1;
            let mut fewer = steps.clone();
            fewer.remove(at);
            if let Some(other) = pair.run(&fewer, self.watch.as_ref()).await? {
                fewer.truncate(other.at + 1);
                steps = fewer;
                difference = other;
                at = at.min(steps.len().saturating_sub(1));
            }
        }
        Ok(trace(steps.iter(), &difference))
    }
}

fn trace<'a>(steps: impl Iterator<Item = &'a Step>, difference: &Difference) -> Vec<String> {
    let lines = difference.lines.iter().map(|line| format!("  {line}"));
    steps.map(ToString::to_string).chain(lines).collect()
}
