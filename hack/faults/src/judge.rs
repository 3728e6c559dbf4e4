//! The judge: checks the invariants on all changes that the observer sees, and reads the logs.

use std::collections::BTreeSet;

use anyhow::Result;
use olm_harness::GrowingFile;
use olm_proof::{Actor, Invariants, Settings, Violation};

use crate::scenario::{FOREIGN_SECRET, Promises};
use crate::{Observer, World};

/// An observer with the invariants over its changes, and the logs of both controllers.
#[derive(Debug)]
pub struct Judge {
    observer: Observer,
    invariants: Invariants,
    logs: [GrowingFile; 2],
    /// Number of changes since the last [`Judge::take_counts`].
    changes: u64,
    /// Number of these changes that the controller under test made.
    by_controller: u64,
    /// Texts of reported violations of the state at rest. The same objects would be found again and again.
    told: BTreeSet<String>,
    /// Number of reported gaps in the observation.
    gaps: usize,
}

impl Judge {
    /// Starts the observer. Objects and lines of logs that already exist are not checked.
    ///
    /// # Errors
    /// A kind cannot be listed.
    pub async fn start(world: &World, promises: Promises) -> Result<Self> {
        let observer = Observer::start(&world.client(), world.ledger.clone()).await?;
        let mut invariants = Invariants::new(Settings {
            secrets: vec![FOREIGN_SECRET.to_owned()],
            common_only: promises == Promises::Common,
            ..Settings::default()
        });
        for (key, object) in observer.existing() {
            invariants.existing(key, object);
        }
        Ok(Self {
            observer,
            invariants,
            logs: [world.controller.log(), world.catalogd.log()].map(GrowingFile::from_end),
            changes: 0,
            by_controller: 0,
            told: BTreeSet::new(),
            gaps: 0,
        })
    }

    /// Returns the violations since the last call, each with `seed`. The cluster must be at rest.
    pub async fn violations(&mut self, seed: &str) -> Vec<Violation> {
        let mut found = Vec::new();
        for change in self.observer.settle().await {
            self.changes += 1;
            self.by_controller += u64::from(matches!(change.actor, Actor::Controller(_)));
            found.extend(self.invariants.observe(&change));
        }
        let left = self.invariants.finish();
        found.extend(
            left.into_iter()
                .filter(|left| self.told.insert(left.text.clone())),
        );
        let gaps = self.observer.lost();
        found.extend(gaps.iter().skip(self.gaps).map(|gap| Violation {
            invariant: "observation".to_owned(),
            seed: String::new(),
            text: format!("The observer missed changes: {gap}"),
        }));
        self.gaps = gaps.len();
        found.extend(self.logs.iter_mut().filter_map(in_log));
        for violation in &mut found {
            seed.clone_into(&mut violation.seed);
        }
        found
    }

    /// Returns the number of changes since the last call, and the number of those by the controller under test.
    pub fn take_counts(&mut self) -> (u64, u64) {
        (
            std::mem::take(&mut self.changes),
            std::mem::take(&mut self.by_controller),
        )
    }
}

/// Returns a violation if a log has gained the content of a Secret, or cannot be read.
fn in_log(log: &mut GrowingFile) -> Option<Violation> {
    let (invariant, text) = match log.gained() {
        Ok(lines) => {
            let lines = String::from_utf8_lossy(&lines);
            let line = lines.lines().find(|line| line.contains(FOREIGN_SECRET))?;
            (
                "no-secrets",
                format!("A log shows the content of a Secret: {line}"),
            )
        }
        Err(error) => ("observation", format!("A log cannot be read: {error:#}")),
    };
    Some(Violation {
        invariant: invariant.to_owned(),
        seed: String::new(),
        text,
    })
}
