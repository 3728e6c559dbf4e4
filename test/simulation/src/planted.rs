//! Planted bugs between the controllers and the network: requests are changed to those of a controller with the bug, or events
//! are hidden from it. The simulation must find each bug, which shows that its checks are adequate. Bugs in production code are
//! patches in the folder `planted`, which `cargo xtask planted` applies.

use std::time::{Duration, Instant};

use olm_proof::{Report, Violation};
use olm_world::Request;
use serde_json::{Value, json};

use crate::fault::Kind;
use crate::hunt::hunt;
use crate::net::{CATALOG, Reply};
use crate::scenario::all;
use crate::simulate::Stage;

/// Time within which a bug must be found.
const LIMIT: Duration = Duration::from_mins(1);

/// A bug between the controllers and the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table has a sentence for each")]
pub enum Bug {
    DeleteUnguarded,
    DriftUnseen,
    DeletionUnseen,
    RbacLeft,
    FinalizerStays,
    RevisionLeft,
    ArchiveSkipped,
    ForeignDeleted,
    ForeignWritten,
    OwnerMissing,
    LabelMissing,
    ReadyEarly,
    ReadyNever,
    StatusLost,
    GenerationFalls,
    ObjectSkipped,
    UpdateSkipped,
    SpecUnseen,
    CatalogUnseen,
    CatalogFormer,
    NumberRepeats,
    BusyStatus,
}

/// Bugs with their sources, which are issues or requirements, and their effects.
pub const BUGS: [(Bug, &str, &str); 22] = [
    (
        Bug::DeleteUnguarded,
        "package-operator/package-operator#1713",
        "deletes objects without their uid and resource version",
    ),
    (
        Bug::DriftUnseen,
        "operator-framework/operator-controller#983",
        "does not see changes of managed objects",
    ),
    (
        Bug::DeletionUnseen,
        "operator-framework/operator-controller#975",
        "does not see deletions of managed objects",
    ),
    (
        Bug::RbacLeft,
        "operator-framework/operator-controller#2313",
        "leaves cluster roles and their bindings behind",
    ),
    (
        Bug::FinalizerStays,
        "operator-framework/operator-controller#2304",
        "never removes the finalizers of an extension",
    ),
    (
        Bug::RevisionLeft,
        "operator-framework/operator-controller#2315",
        "leaves revisions behind when their extension goes",
    ),
    (
        Bug::ArchiveSkipped,
        "own: one active revision",
        "does not archive the former revision",
    ),
    (
        Bug::ForeignDeleted,
        "package-operator/package-operator#1713",
        "deletes an object of others in place of its own",
    ),
    (
        Bug::ForeignWritten,
        "own: collision protection",
        "writes its config map over one of others",
    ),
    (
        Bug::OwnerMissing,
        "operator-framework/operator-controller#2313",
        "writes objects without an owner",
    ),
    (
        Bug::LabelMissing,
        "own: labels of owners",
        "writes objects without the label of their extension",
    ),
    (
        Bug::ReadyEarly,
        "own: Ready is a summary",
        "says Ready before the spec is fulfilled",
    ),
    (Bug::ReadyNever, "own: Ready is a summary", "never says Ready"),
    (
        Bug::StatusLost,
        "operator-framework/operator-controller#1314",
        "takes a status for written that was not",
    ),
    (
        Bug::GenerationFalls,
        "own: observedGeneration",
        "writes conditions of the generation before",
    ),
    (
        Bug::ObjectSkipped,
        "own: completeness",
        "takes the creation of a config map for done",
    ),
    (
        Bug::UpdateSkipped,
        "own: completeness",
        "takes the update of a Deployment for done",
    ),
    (
        Bug::SpecUnseen,
        "own: triggers",
        "does not see changes of the spec",
    ),
    (
        Bug::CatalogUnseen,
        "own: triggers",
        "does not see changes of catalogs",
    ),
    (
        Bug::CatalogFormer,
        "own: content of one digest",
        "resolves from the former content of a catalog",
    ),
    (
        Bug::NumberRepeats,
        "own: revision numbers",
        "gives each revision the number 1",
    ),
    (
        Bug::BusyStatus,
        "own: a quiet hour",
        "writes the status of a revision again and again",
    ),
];

impl Bug {
    /// Changes a request to the one that a controller with the bug would send. `count` is the number of writes so far.
    pub(crate) fn change(self, request: &mut Request, count: usize) {
        let writes = |part: &str| request.method != "GET" && request.path.contains(part);
        // With these bugs, the controller takes a write for done that never happened: a dry run changes nothing and answers with
        // success.
        let dry = match self {
            Self::RbacLeft => request.method == "DELETE" && request.path.contains("/clusterrole"),
            Self::FinalizerStays => {
                writes("/clusterextensions/")
                    && String::from_utf8_lossy(&request.body).contains("\"finalizers\":[]")
            }
            Self::RevisionLeft => request.method == "DELETE" && request.path.contains("/clusterobjectsets/"),
            Self::ArchiveSkipped => {
                writes("/clusterobjectsets/")
                    && String::from_utf8_lossy(&request.body).contains("\"lifecycleState\":\"Archived\"")
            }
            Self::StatusLost => writes("/clusterextensions/") && request.path.ends_with("/status"),
            Self::ObjectSkipped => request.method == "PATCH" && request.path.contains("/configmaps/"),
            Self::UpdateSkipped => {
                request.method == "PATCH" && request.path.contains("/deployments/") && count > 100
            }
            _ => false,
        };
        if dry {
            request.query = format!("{}&dryRun=All", request.query);
        }
        match self {
            Self::ForeignDeleted if request.method == "DELETE" => {
                request.path = request.path.replace("/alpha-settings", "/foreign");
                edit(request, |body| {
                    if let Some(options) = body.as_object_mut() {
                        options.remove("preconditions");
                    }
                });
            }
            Self::ForeignWritten if request.method == "PATCH" && request.path.contains("/alpha-settings") => {
                request.path = request.path.replace("/alpha-settings", "/foreign");
                request.query = format!("{}&force=true", request.query);
                edit(request, |body| body["metadata"]["name"] = "foreign".into());
            }
            _ => {}
        }
        let (path, method) = (request.path.clone(), request.method.clone());
        let object =
            method == "PATCH" && !path.contains("olm.operatorframework.io") && !path.contains("/events/");
        edit(request, |body| {
            self.change_body(body, &path, &method, object, count);
        });
    }

    /// Changes the body of a request. `object` is true for a write of an object of a bundle.
    fn change_body(self, body: &mut Value, path: &str, method: &str, object: bool, count: usize) {
        let remove = |body: &mut Value, pointer: &str, name: &str| {
            let map = body.pointer_mut(pointer).and_then(Value::as_object_mut);
            map.and_then(|map| map.remove(name));
        };
        match self {
            Self::DeleteUnguarded if method == "DELETE" => remove(body, "", "preconditions"),
            Self::OwnerMissing if object => remove(body, "/metadata", "ownerReferences"),
            Self::LabelMissing if object => {
                remove(body, "/metadata/labels", "olm.operatorframework.io/owner-name");
            }
            Self::NumberRepeats
                if path.contains("/clusterobjectsets/") && body["spec"]["revision"].is_i64() =>
            {
                body["spec"]["revision"] = json!(1);
            }
            Self::BusyStatus if path.contains("/clusterobjectsets/") && path.ends_with("/status") => {
                each_condition(body, |condition| {
                    condition["message"] = format!("attempt {count}").into();
                });
            }
            Self::ReadyEarly | Self::ReadyNever
                if path.contains("/clusterextensions/") && path.ends_with("/status") =>
            {
                let status = if self == Self::ReadyEarly { "True" } else { "False" };
                each_condition(body, |condition| {
                    if condition["type"] == "Ready" {
                        condition["status"] = status.into();
                    }
                });
            }
            Self::GenerationFalls
                if path.contains("/clusterextensions/")
                    && path.ends_with("/status")
                    && count.is_multiple_of(2) =>
            {
                each_condition(body, |condition| condition["observedGeneration"] = json!(0));
            }
            _ => {}
        }
    }

    /// Returns true if a controller with the bug does not see this event of a watch on `path`.
    pub(crate) fn hides(self, path: &str, frame: &Value) -> bool {
        let managed = !frame["object"]["metadata"]["labels"]["olm.operatorframework.io/owner-name"].is_null()
            && !path.contains("olm.operatorframework.io");
        match self {
            Self::DriftUnseen => managed && frame["type"] == "MODIFIED",
            Self::DeletionUnseen => managed && frame["type"] == "DELETED",
            Self::SpecUnseen => {
                path.contains("/clusterextensions") && frame["object"]["metadata"]["generation"] != 1
            }
            Self::CatalogUnseen => path.contains("/clustercatalogs"),
            _ => false,
        }
    }

    /// Returns the changed answer of a catalog, if the bug is one of catalogs.
    pub(crate) fn catalog(self, request: &Request) -> Option<Reply> {
        (self == Self::CatalogFormer && request.method == CATALOG).then_some(Reply::Unmarked)
    }
}

/// Changes the body of a request, if it has a JSON body.
fn edit(request: &mut Request, change: impl FnOnce(&mut Value)) {
    if let Ok(mut body) = serde_json::from_slice::<Value>(&request.body) {
        change(&mut body);
        request.body = body.to_string().into_bytes();
    }
}

fn each_condition(body: &mut Value, change: impl FnMut(&mut Value)) {
    let conditions = body
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    conditions.into_iter().flatten().for_each(change);
}

/// Hunts every planted bug, each for at most a minute, and all of them for about `limit`. A bug that is not found is a violation.
#[must_use]
pub fn find_planted(stage: &Stage, seed: u64, limit: Duration) -> Report {
    let start = Instant::now();
    let scenarios = all();
    let mut figures = Vec::new();
    let mut missed = Vec::new();
    let mut found = 0;
    let mut tried = 0;
    for (bug, source, what) in BUGS {
        if start.elapsed() >= limit {
            break;
        }
        tried += 1;
        let name = format!("{bug:?}: {what} ({source})");
        let hunt = hunt(stage, &scenarios, Some(bug), seed, LIMIT);
        if hunt.violation.is_some() {
            found += 1;
        } else {
            missed.push(Violation {
                invariant: "adequacy".to_owned(),
                seed: format!("{bug:?}"),
                text: format!("the planted bug is not found: {what}"),
            });
        }
        figures.push((name, hunt.to_string()));
    }
    figures.insert(
        0,
        (
            "bugs between the controllers and the network found".to_owned(),
            format!("{found} of {tried}"),
        ),
    );
    Report {
        title: "Planted bugs".to_owned(),
        about: "Each bug is planted between the controllers and the network: what a controller with the bug would send, or would not \
                see. The simulation runs its scenarios until an invariant or a check breaks."
            .to_owned(),
        figures,
        not_covered: not_tried(tried),
        violations: missed,
        ..Report::default()
    }
}

/// Returns a sentence that names the bugs for which no time was left, if any.
fn not_tried(tried: usize) -> Vec<String> {
    let left: Vec<String> = BUGS
        .iter()
        .skip(tried)
        .map(|(bug, ..)| format!("{bug:?}"))
        .collect();
    if left.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "No time was left for the planted bugs {}.",
        left.join(", ")
    )]
}

/// Returns true for the kinds of calls that no planted bug changes.
pub(crate) fn spares(kind: Kind) -> bool {
    matches!(kind, Kind::Image | Kind::Watch | Kind::List)
}
