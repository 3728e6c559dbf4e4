//! Moves of the extensions with a joint plan, exchanged between their passes.
//!
//! The moves are in memory only: after a restart, each pass records its own again. A revision is written only when all extensions of the
//! joint plan are ready to write theirs, or have done so.

use std::collections::HashMap;
use std::time::Duration;

use kube::Api;
use olm_api::ClusterExtension;
use olm_api::names::Segment;
use olm_decide::extension::dependents::Provider;
use olm_decide::extension::joint::{Move, Stage, agrees, joint_plan};
use olm_decide::extension::{History, Resolved};
use olm_status::cluster_extension::Progress;
use parking_lot::Mutex;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::call;
use crate::cluster_extension::delays::Delays;
use crate::cluster_extension::failure::Stopped;
use crate::cluster_extension::pass::Pass;

/// Longest delay before the partners are looked at again: no event announces their readiness.
const RECHECK: Duration = Duration::from_secs(3);

/// Moves by extension.
#[derive(Debug, Default)]
pub(crate) struct JointMoves(Mutex<HashMap<String, Move>>);

impl JointMoves {
    /// Drops the move of an extension.
    pub(crate) fn remove(&self, extension: &str) {
        self.0.lock().remove(extension);
    }

    fn record(&self, extension: &str, found: Move) {
        let mut moves = self.0.lock();
        let found = found.after(moves.get(extension));
        moves.insert(extension.to_owned(), found);
    }

    fn set_ready(&self, extension: &str) {
        if let Some(found) = self.0.lock().get_mut(extension) {
            found.stage = Stage::Ready;
        }
    }

    /// Makes an extension wait for its own checks again: one of them failed that had passed, or never did.
    pub(crate) fn unset_ready(&self, extension: &str) {
        let mut moves = self.0.lock();
        if let Some(found) = moves
            .get_mut(extension)
            .filter(|found| found.stage == Stage::Ready)
        {
            found.stage = Stage::Resolved;
        }
    }

    fn get(&self, extension: &ClusterExtension) -> Option<Move> {
        let name = extension.metadata.name.as_deref()?;
        self.0
            .lock()
            .get(name)
            .filter(|found| found.is_of(extension))
            .cloned()
    }
}

/// Joint plan of a pass whose partners agree, with their moves.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    own: String,
    /// Bundles that the partners move to, by extension.
    pub(crate) moves: Vec<(String, Move)>,
}

/// Records the move of the pass, and returns its joint plan with the moves of all partners. None without a joint plan, if the extension
/// has moved, or if a partner disagrees or has no move yet.
pub(crate) async fn gather(pass: &Pass<'_>, resolved: &Resolved, history: &History) -> Option<Joint> {
    let context = pass.context;
    let Some(plan) = joint_plan(pass.extension) else {
        context.joint_moves.remove(&pass.name);
        return None;
    };
    let bundle = &resolved.bundle;
    let provider = Provider::new(
        bundle.package.clone(),
        &bundle.version,
        resolved.properties.clone(),
    )?;
    let moved = history
        .newest()
        .is_some_and(|newest| newest.bundle.same_bundle(bundle));
    let own = Move {
        uid: pass.extension.metadata.uid.clone(),
        generation: pass.extension.metadata.generation,
        provider,
        stage: if moved { Stage::Moved } else { Stage::Resolved },
    };
    context.joint_moves.record(&pass.name, own);
    if moved {
        return None;
    }
    let mut joint = Joint {
        own: plan.own,
        moves: Vec::new(),
    };
    for name in plan.partners {
        let partner = read(context, &name).await?;
        let found = context
            .joint_moves
            .get(&partner)
            .filter(|_| agrees(pass.extension, &partner))?;
        joint.moves.push((name, found));
    }
    Some(joint)
}

/// Reads a partner. One that cannot be read does not agree.
async fn read(context: &Context, name: &str) -> Option<ClusterExtension> {
    if let Some(known) = context.stores.extension(name) {
        return Some(known);
    }
    let segment = Segment::new(name).ok()?;
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let what = format!("reading ClusterExtension \"{name}\"");
    call(what, api.get_opt(&segment)).await.ok().flatten()
}

impl Joint {
    /// Returns true if the joint plan approves the plan with this digest.
    pub(crate) fn approves(&self, digest: &str) -> bool {
        self.own == digest
    }

    /// Waits for the partners, after every check of the own bundle passed.
    ///
    /// Errors: the partners that are not ready, as the status shows them.
    pub(crate) fn await_partners(&self, pass: &Pass<'_>) -> Result<(), Stopped> {
        pass.context.joint_moves.set_ready(&pass.name);
        let present = pass.context.joint_moves.0.lock();
        let is_ready = |name: &str, known: &Move| {
            let found = present
                .get(name)
                .filter(|found| (&found.uid, found.generation) == (&known.uid, known.generation));
            found.is_some_and(|found| found.stage != Stage::Resolved)
        };
        let late: Vec<String> = self
            .moves
            .iter()
            .filter(|(name, known)| !is_ready(name, known))
            .map(|(name, _)| format!("ClusterExtension \"{name}\""))
            .collect();
        drop(present);
        if late.is_empty() {
            return Ok(());
        }
        Err(Stopped {
            progress: Progress::Retrying(format!(
                "the joint plan is approved, and this extension is ready; it is rolled out together with {}, which is not ready yet: \
                 see its status",
                late.join(" and ")
            )),
            delays: Delays::at_most(RECHECK),
            superseded: false,
            waiting: None,
        })
    }
}

/// Returns the end of a pass that has a joint plan: its partners may record their moves at any time.
pub(crate) fn soon(pass: &Pass<'_>, mut stopped: Stopped) -> Stopped {
    if joint_plan(pass.extension).is_some() {
        stopped.delays = stopped.delays.sooner(RECHECK);
    }
    stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_ready_until_a_check_fails() {
        let moves = JointMoves::default();
        let extension: ClusterExtension = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "x", "uid": "u", "generation": 1},
            "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}},
        }))
        .unwrap();
        let found = |stage| Move {
            uid: extension.metadata.uid.clone(),
            generation: extension.metadata.generation,
            provider: Provider::new("a".into(), &"1.0.0".into(), Vec::new()).unwrap(),
            stage,
        };
        let stage = || moves.get(&extension).map(|found| found.stage);
        moves.record("x", found(Stage::Resolved));
        moves.set_ready("x");
        moves.record("x", found(Stage::Resolved));
        assert_eq!(stage(), Some(Stage::Ready), "while its checks are repeated");
        moves.unset_ready("x");
        assert_eq!(stage(), Some(Stage::Resolved));
        moves.record("x", found(Stage::Moved));
        moves.unset_ready("x");
        assert_eq!(stage(), Some(Stage::Moved), "what has moved stays moved");
        moves.remove("x");
        assert_eq!(stage(), None);
    }
}
