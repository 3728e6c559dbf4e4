//! Rollbacks over random histories: outcomes of rollouts, changes of catalog, image and spec, requests, and crashes
//! between the decision and its write.

use olm_api::FailurePolicy;
use olm_api::rollback::{CatalogContent, Rollback, RolloutAttempt, RolloutFailure};
use olm_rollout::{Direction, Newest, Situation, direction};
use proptest::prelude::*;

/// Event in the life of an extension.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The newest revision rolls out.
    Succeeds,
    /// The rollout of the newest revision fails.
    Fails,
    /// The catalog gets other content with the same bundle.
    Catalog(u8),
    /// The catalog brings another bundle.
    Bundle(u8),
    /// The tag of the image moves.
    Image(u8),
    /// The spec changes.
    Spec(u8),
    /// `rollBackTo` is set.
    Request(u8),
    /// `rollBackTo` is removed.
    Unrequest,
    /// The catalogs cannot be read.
    Outage(bool),
    /// `onFailure` changes, which is no input.
    OnFailure(bool),
    /// The controller decides and writes.
    Pass,
    /// The controller decides and ends before its write.
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Succeeds),
        4 => Just(Event::Fails),
        1 => (0..3_u8).prop_map(Event::Catalog),
        1 => (0..4_u8).prop_map(Event::Bundle),
        1 => (0..3_u8).prop_map(Event::Image),
        1 => (0..3_u8).prop_map(Event::Spec),
        1 => (1..6_u8).prop_map(Event::Request),
        1 => Just(Event::Unrequest),
        1 => any::<bool>().prop_map(Event::Outage),
        1 => any::<bool>().prop_map(Event::OnFailure),
        8 => Just(Event::Pass),
        2 => Just(Event::Crash),
    ]
}

#[derive(Clone, Debug)]
struct Revision {
    number: i64,
    /// Bundle, image and spec: what determines the objects.
    objects: (u8, u8, u8),
    attempt: RolloutAttempt,
    succeeded: bool,
    failed: bool,
    archived: bool,
    rollback: Option<Rollback>,
}

/// Cluster, catalog and spec, with the log of the writes.
#[derive(Clone, Debug)]
struct Model {
    revisions: Vec<Revision>,
    catalog: u8,
    bundle: u8,
    image: u8,
    spec: u8,
    request: Option<i64>,
    outage: bool,
    on_failure: FailurePolicy,
    writes: Vec<Revision>,
}

impl Model {
    fn new() -> Self {
        Self {
            revisions: Vec::new(),
            catalog: 0,
            bundle: 0,
            image: 0,
            spec: 0,
            request: None,
            outage: false,
            on_failure: FailurePolicy::RollBack,
            writes: Vec::new(),
        }
    }

    fn attempt(&self) -> RolloutAttempt {
        RolloutAttempt {
            spec: self.spec.to_string(),
            bundle: format!("a.v{}", self.bundle),
            version: self.bundle.to_string(),
            image: Some(self.image.to_string()),
            namespaces: None,
            catalog: Some(CatalogContent {
                name: "c".to_owned(),
                digest: self.catalog.to_string(),
            }),
        }
    }

    fn newest(&self) -> Option<&Revision> {
        self.revisions.iter().rev().find(|revision| !revision.archived)
    }

    fn installed(&self) -> Option<&Revision> {
        let mut active = self.revisions.iter().rev().filter(|revision| !revision.archived);
        active.find(|revision| revision.succeeded)
    }

    fn decide(&self) -> Direction {
        let next = self.attempt();
        let installed = self.installed();
        let newest = self.newest().map(|newest| Newest {
            number: newest.number,
            failed: newest.failed && !newest.succeeded,
            same_objects: installed.is_some_and(|installed| installed.objects == newest.objects),
            rollback: newest.rollback.as_ref(),
        });
        direction(&Situation {
            request: self.request,
            on_failure: self.on_failure,
            newest,
            installed: installed.map(|revision| revision.number),
            next: (!self.outage).then_some(&next),
        })
    }

    /// Returns the revision that the direction writes; none if nothing is written.
    fn wanted(&self, direction: Direction) -> Option<Revision> {
        let number = self
            .revisions
            .iter()
            .map(|revision| revision.number)
            .max()
            .unwrap_or(0)
            + 1;
        match direction {
            Direction::StayRequested | Direction::StayFailed => None,
            Direction::Restore { to, automatic } => {
                let former = self.revisions.iter().find(|revision| revision.number == to)?;
                let newest = self.newest()?;
                Some(Revision {
                    number,
                    succeeded: false,
                    failed: false,
                    archived: false,
                    rollback: Some(Rollback {
                        to,
                        from: newest.number,
                        from_version: newest.attempt.version.clone(),
                        failure: automatic.then(|| RolloutFailure {
                            attempt: newest.attempt.clone(),
                            message: String::new(),
                        }),
                    }),
                    ..former.clone()
                })
            }
            Direction::Forward if self.outage => None,
            Direction::Forward => {
                let objects = (self.bundle, self.image, self.spec);
                if self.newest().is_some_and(|newest| newest.objects == objects) {
                    return None;
                }
                Some(Revision {
                    number,
                    objects,
                    attempt: self.attempt(),
                    succeeded: false,
                    failed: false,
                    archived: false,
                    rollback: None,
                })
            }
        }
    }

    /// One pass; returns true if a revision was written.
    fn pass(&mut self) -> bool {
        let direction = self.decide();
        let Some(revision) = self.wanted(direction) else {
            return false;
        };
        self.writes.push(revision.clone());
        self.revisions.push(revision);
        true
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Succeeds => {
                let Some(number) = self.newest().map(|newest| newest.number) else {
                    return;
                };
                for revision in &mut self.revisions {
                    revision.archived |= revision.number < number;
                    revision.succeeded |= revision.number == number;
                }
                // History limit.
                while self.revisions.iter().filter(|revision| revision.archived).count() > 5 {
                    self.revisions.remove(0);
                }
            }
            Event::Fails => {
                let number = self.newest().map(|newest| newest.number);
                let newest = self
                    .revisions
                    .iter_mut()
                    .find(|revision| Some(revision.number) == number);
                if let Some(newest) = newest.filter(|newest| !newest.succeeded) {
                    newest.failed = true;
                }
            }
            Event::Catalog(content) => self.catalog = content,
            Event::Bundle(bundle) => {
                // Another bundle is another content.
                self.catalog = self.catalog.wrapping_add(u8::from(bundle != self.bundle) * 10);
                self.bundle = bundle;
            }
            Event::Image(image) => self.image = image,
            Event::Spec(spec) => self.spec = spec,
            Event::Request(number) => self.request = Some(i64::from(number)),
            Event::Unrequest => self.request = None,
            Event::Outage(outage) => self.outage = outage,
            Event::OnFailure(back) => {
                self.on_failure = if back {
                    FailurePolicy::RollBack
                } else {
                    FailurePolicy::Wait
                };
            }
            Event::Pass => {
                self.pass();
            }
            Event::Crash => {
                let direction = self.decide();
                let _lost = self.wanted(direction);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rollbacks_neither_repeat_nor_flap(events in prop::collection::vec(event(), 1..120)) {
        let mut model = Model::new();
        for event in events {
            let before = model.clone();
            model.apply(event);
            let Some(written) = model.writes.get(before.writes.len()) else {
                continue;
            };
            let automatic = |revision: &Revision| {
                revision.rollback.as_ref().is_some_and(|rollback| rollback.failure.is_some())
            };
            let newest = before.newest();
            if automatic(written) {
                // Never two in a row: the revision that is rolled back is none itself, and has failed.
                let newest = newest.unwrap();
                prop_assert!(newest.rollback.is_none() && newest.failed, "{newest:?}");
                prop_assert_eq!(before.on_failure, FailurePolicy::RollBack);
                let target = written.rollback.as_ref().unwrap().to;
                let target = before.revisions.iter().find(|revision| revision.number == target).unwrap();
                prop_assert!(target.succeeded, "only content that worked is rolled out again");
                prop_assert!(target.objects != newest.objects, "the content changes");
            } else if written.rollback.is_none() {
                // What failed is not tried again while the newest revision replaces it.
                prop_assert_eq!(before.request, None, "a request holds");
                if let Some(failure) = newest.and_then(|newest| newest.rollback.as_ref()?.failure.as_ref()) {
                    prop_assert!(!failure.attempt.is_same_as(&before.attempt()));
                }
            } else {
                prop_assert_eq!(Some(written.rollback.as_ref().unwrap().to), before.request);
            }
            // At rest: passes without a change of anything write at most one rollback of a failed revision, then nothing.
            let mut idle = model.clone();
            let mut writes = 0;
            for _ in 0..4 {
                writes += u32::from(idle.pass());
            }
            prop_assert!(writes <= 1, "{writes} writes without an event");
        }
    }

    /// The worst case: every rollout fails, while nothing changes.
    #[test]
    fn failures_alone_write_two_revisions(passes in 1..40_usize) {
        let mut model = Model::new();
        for event in [Event::Pass, Event::Succeeds, Event::Bundle(1)] {
            model.apply(event);
        }
        for _ in 0..passes {
            model.apply(Event::Pass);
            model.apply(Event::Fails);
        }
        model.apply(Event::Pass);
        prop_assert_eq!(model.writes.len(), 3, "the installation, the upgrade and its rollback");
    }
}
