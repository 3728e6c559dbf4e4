//! Invariants over everything that happens at the API server.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use kube::Client;
use olm_proof::{Actor, Invariants, Settings, Violation};

use crate::Observer;
use crate::proxy::Ledger;
use crate::scenario::{FOREIGN_SECRET, Promises};

/// An observer whose changes are held against the invariants.
#[derive(Debug)]
pub struct Judge {
    observer: Observer,
    invariants: Invariants,
    changes: u64,
    by_controller: u64,
    /// Texts of violations at rest, which would be found again.
    told: BTreeSet<String>,
    gaps: usize,
}

impl Judge {
    /// Starts to observe. Objects that exist already are taken as they are.
    ///
    /// # Errors
    /// A kind cannot be listed.
    pub async fn start(client: &Client, ledger: Arc<Ledger>, promises: Promises) -> Result<Self> {
        let observer = Observer::start(client, ledger).await?;
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
            changes: 0,
            by_controller: 0,
            told: BTreeSet::new(),
            gaps: 0,
        })
    }

    /// Returns the violations since the last call, with `seed`. The cluster must be at rest.
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
        for violation in &mut found {
            seed.clone_into(&mut violation.seed);
        }
        found
    }

    /// Takes the number of changes since the last call, and of those whose sender is the controller under test.
    pub fn take_counts(&mut self) -> (u64, u64) {
        (
            std::mem::take(&mut self.changes),
            std::mem::take(&mut self.by_controller),
        )
    }
}
