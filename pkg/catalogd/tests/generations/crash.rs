//! A crash after each change of the disk, and a crash of the restart after it; a refusal of each call.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
};

use sha2::{Digest as _, Sha256};

use crate::{
    disk::{self, EIO, ENOSPC, EROFS, Refusal},
    histories::{HISTORIES, History, Lab, Served, leftovers, served},
    image::{Image, Losses, Recording},
    storage::Store,
};

/// Figures and findings.
#[derive(Default)]
pub(crate) struct Findings {
    /// Crash points: changes of the disk, or the end, before which a crash is tried.
    pub(crate) points: u64,
    /// Disks that crashes leave.
    pub(crate) disks: u64,
    /// Different disks, each with the contents that may be served from it.
    pub(crate) distinct: u64,
    /// Refused calls.
    pub(crate) refusals: u64,
    /// Broken invariants: where, and what.
    pub(crate) violations: Vec<(String, String)>,
}

/// Exploration of all histories.
pub(crate) struct Explorer {
    lab: Lab,
    /// True if the loss of each single entry and a crash of the restart are tried after refused calls, too.
    thorough: bool,
    seen: HashSet<[u8; 32]>,
    pub(crate) findings: Findings,
}

impl Explorer {
    pub(crate) fn new(thorough: bool) -> Self {
        Self {
            lab: Lab::new(),
            thorough,
            seen: HashSet::new(),
            findings: Findings::default(),
        }
    }

    pub(crate) fn run(&mut self) {
        for history in &HISTORIES {
            self.crashes(history);
            self.refusals(history);
        }
    }

    /// Returns a folder after the first part of a history.
    fn prepare(&self, history: &History) -> PathBuf {
        let root = self.lab.root();
        let store = Store::open(&root).unwrap();
        for &step in history.before {
            self.lab.take(&store, step).unwrap();
        }
        root
    }

    fn crashes(&mut self, history: &History) {
        let root = self.prepare(history);
        disk::record(&root);
        let store = Store::open(&root).unwrap();
        // Contents that may be served after a crash, from this number of changes on.
        let mut allowed: Vec<(usize, BTreeSet<Served>)> = vec![(0, [served(&store).unwrap()].into())];
        for &step in history.steps {
            let begin = disk::recorded();
            self.lab.take(&store, step).unwrap();
            let after = served(&store).unwrap();
            let mut during = allowed.last().unwrap().1.clone();
            during.insert(after.clone());
            allowed.push((begin + 1, during));
            if step.is_durable() {
                allowed.push((disk::recorded(), [after].into()));
            }
        }
        let recording = disk::finish().unwrap();
        // Two steps have too many combinations for every run of the tests.
        let losses = match (self.thorough, history.steps.len()) {
            (true, _) | (_, 1) => Losses::Combined,
            _ => Losses::Single,
        };
        for count in 0..=recording.ops.len() {
            let (_, allowed) = allowed.iter().rfind(|(from, _)| *from <= count).unwrap();
            self.crash((&recording, count, losses), allowed, || {
                format!("{}, crash after change {count}", history.name)
            });
        }
    }

    /// Restarts on each disk that a crash after `count` changes may leave. Unless entries are lost only together, the restart crashes, too.
    fn crash(
        &mut self,
        (recording, count, losses): (&Recording, usize, Losses),
        allowed: &BTreeSet<Served>,
        at: impl Fn() -> String,
    ) {
        self.findings.points += 1;
        for image in recording.after_crash(count, losses) {
            self.restart(&image, allowed, &at, losses != Losses::Together);
        }
    }

    fn restart(&mut self, image: &Image, allowed: &BTreeSet<Served>, at: &dyn Fn() -> String, again: bool) {
        self.findings.disks += 1;
        let key = Sha256::digest(format!("{again} {allowed:?}\n{}", image.text()));
        if !self.seen.insert(key.into()) {
            return;
        }
        self.findings.distinct += 1;
        let root = self.lab.root();
        image.write(&root);
        disk::record(&root);
        let opened = Store::open(&root);
        let recovery = disk::finish().unwrap();
        let found = match opened.map(|store| served(&store)) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return self.violation(at(), error),
            Err(error) => return self.violation(at(), olm_text::chain(&error)),
        };
        if !allowed.contains(&found) {
            self.violation(at(), format!("{found:?} is served, none of {allowed:?}"));
        }
        let left = leftovers(&root);
        if !left.is_empty() {
            self.violation(at(), format!("{} stay after a restart", left.join(", ")));
        }
        if again {
            // A reader may have seen what the restart serves: it stays.
            let seen = [found].into();
            for count in 0..=recovery.ops.len() {
                self.findings.points += 1;
                for image in recovery.after_crash(count, Losses::Single) {
                    let place = || format!("{}, then after change {count} of the restart", at());
                    self.restart(&image, &seen, &place, false);
                }
            }
        }
        std::fs::remove_dir_all(root).unwrap();
    }

    /// Refuses each call of the last step, alone and with all later ones, and takes the step again.
    fn refusals(&mut self, history: &History) {
        let losses = if self.thorough {
            Losses::Single
        } else {
            Losses::Together
        };
        let (&last, steps) = history.steps.split_last().unwrap();
        for (errno, once) in [(EIO, true), (ENOSPC, false), (EROFS, false)] {
            for from in 0.. {
                let root = self.prepare(history);
                let store = Store::open(&root).unwrap();
                for &step in steps {
                    self.lab.take(&store, step).unwrap();
                }
                let old = served(&store).unwrap();
                disk::record(&root);
                disk::refuse(Some(Refusal { from, once, errno }));
                let outcome = self.lab.take(&store, last);
                let calls = disk::count();
                disk::refuse(None);
                self.findings.refusals += 1;
                let at = || {
                    format!(
                        "{}, call {from} refused with {errno}{}",
                        history.name,
                        if once { " once" } else { "" }
                    )
                };
                let held = served(&store);
                let failed = outcome.is_err();
                let middle = disk::recorded();
                if let Err(error) = self.lab.take(&store, last) {
                    let error = olm_text::chain(&error);
                    if !(matches!(last, crate::histories::Step::Origin(_)) && held == Ok(None)) {
                        self.violation(at(), format!("the second attempt fails: {error}"));
                    }
                }
                let new = served(&store).unwrap();
                let recording = disk::finish().unwrap();
                let both: BTreeSet<Served> = [old, new.clone()].into();
                match &held {
                    Ok(held) if both.contains(held) && (failed || *held == new) => {}
                    Ok(held) => self.violation(at(), format!("{held:?} is served, none of {both:?}")),
                    Err(error) => self.violation(at(), error.clone()),
                }
                // A second attempt that starts from a known disk and known content has known crash points.
                let begin = format!("{both:?} {held:?} {}", recording.clean_cut(middle).text());
                let known = !self.seen.insert(Sha256::digest(begin).into());
                for count in middle..=if known { middle } else { recording.ops.len() } {
                    let done = count == recording.ops.len() && last.is_durable();
                    let allowed = if done { [new.clone()].into() } else { both.clone() };
                    self.crash((&recording, count, losses), &allowed, || {
                        format!("{}, second attempt, crash after change {count}", at())
                    });
                }
                std::fs::remove_dir_all(root).unwrap();
                if from >= calls {
                    break;
                }
            }
        }
    }

    fn violation(&mut self, at: String, text: String) {
        self.findings.violations.push((at, text));
    }
}
