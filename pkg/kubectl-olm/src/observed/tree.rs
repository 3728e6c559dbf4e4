//! Objects of an extension by phase, with their health.

use kube::ResourceExt as _;
use olm_api::LifecycleState;
use olm_api::condition::external::{Crd, Workload as WorkloadCondition};
use olm_api::condition::{types, untyped};
use olm_applier::probe::Prober;
use olm_applier::workload::Workload;
use olm_status::overview::Mood;
use olm_text::object::{ObjectId, text as text_of};
use serde_json::Value;

use crate::absent;
use crate::failure::Failure;
use crate::source::{Cluster, Kinds};

/// Conditions that decide if an object is healthy, by the conventions of most kinds.
const DECISIVE: [&str; 3] = [
    types::Extension::Ready.as_str(),
    WorkloadCondition::Available.as_str(),
    Crd::Established.as_str(),
];

/// The newest revision that is kept up, with its objects by phase.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Name of the revision.
    pub(crate) revision: String,
    /// Its phases in their order: name and objects.
    pub(crate) phases: Vec<(String, Vec<ObjectHealth>)>,
}

/// An object with its health.
#[derive(Debug)]
pub(crate) struct ObjectHealth {
    /// Its kind; empty if the object cannot be read from its Secret.
    pub(crate) kind: String,
    /// Its API version.
    pub(crate) api_version: String,
    /// Its namespace; empty for a kind of the whole cluster.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its health in a word or two.
    pub(crate) health: &'static str,
    /// How good that is.
    pub(crate) mood: Mood,
    /// Why it is not healthy; empty if that is unknown.
    pub(crate) message: String,
}

impl ObjectHealth {
    /// Returns kind, namespace and name.
    pub(crate) fn title(&self) -> String {
        let Self {
            kind,
            namespace,
            name,
            ..
        } = self;
        if kind.is_empty() {
            "unknown object".to_owned()
        } else if namespace.is_empty() {
            format!("{kind} {name}")
        } else {
            format!("{kind} {namespace}/{name}")
        }
    }
}

impl Tree {
    /// Reads the objects of the newest revision of an extension that is kept up.
    ///
    /// # Errors
    /// There is no such revision, or the cluster cannot be read.
    pub(crate) async fn read(cluster: &Cluster, extension: &str) -> Result<Self, Failure> {
        let revisions = cluster.revisions(Some(extension)).await?;
        let newest = revisions
            .iter()
            .rev()
            .find(|set| set.spec.lifecycle_state != LifecycleState::Archived);
        let Some(set) = newest else {
            if cluster.one_extension(extension).await?.is_none() {
                return Err(Failure::NegativeAnswer(
                    absent::extension(cluster, extension).await,
                ));
            }
            return Err(Failure::NegativeAnswer(format!(
                "ClusterExtension {extension:?} has no revision that is kept up"
            )));
        };
        // The controller reports probes that cannot be read.
        let probes = set.spec.progression_probes.as_deref().unwrap_or_default();
        let probes = Prober::new(probes).unwrap_or_default();
        let all = cluster.objects(set).await?;
        let objects: Vec<Value> = all
            .iter()
            .flat_map(|phase| phase.objects.iter().cloned())
            .collect();
        let kinds = cluster.kinds(&objects).await?;
        let mut phases = Vec::new();
        for phase in all {
            let mut objects = Vec::new();
            for object in &phase.objects {
                objects.push(observe(cluster, object, &kinds, &probes).await?);
            }
            objects.extend(phase.unresolved.into_iter().map(unresolved));
            phases.push((phase.name, objects));
        }
        Ok(Self {
            revision: set.name_any(),
            phases,
        })
    }

    /// Returns true if every object is there and healthy.
    pub(crate) fn is_healthy(&self) -> bool {
        let mut objects = self.phases.iter().flat_map(|(_, objects)| objects);
        objects.all(|object| object.mood == Mood::Good)
    }
}

/// Returns the row of an object that cannot be read from its Secret.
fn unresolved(why: String) -> ObjectHealth {
    ObjectHealth {
        kind: String::new(),
        api_version: String::new(),
        namespace: String::new(),
        name: String::new(),
        health: "unreadable",
        mood: Mood::Bad,
        message: why,
    }
}

async fn observe(
    cluster: &Cluster,
    object: &Value,
    kinds: &Kinds,
    probes: &Prober,
) -> Result<ObjectHealth, Failure> {
    let live = cluster.present(object, kinds).await?;
    let found = live.map(|live| serde_json::to_value(live).unwrap_or_default());
    let (mood, health, mut message) = health(found.as_ref(), probes);
    if mood != Mood::Good
        && let Some(workload) = found.as_ref().and_then(Workload::of)
        && let Some(reason) = cluster.diagnosis(&workload).await.clause()
    {
        message = reason;
    }
    let id = ObjectId::of(object);
    let namespace = if kinds.is_cluster_scoped(object) {
        ""
    } else {
        id.namespace
    };
    Ok(ObjectHealth {
        kind: id.kind.to_owned(),
        api_version: text_of(object, "/apiVersion").to_owned(),
        namespace: namespace.to_owned(),
        name: id.name.to_owned(),
        health,
        mood,
        message,
    })
}

/// Health of an object by what most kinds have, its conditions and the generation they are of, and by the revision's probes.
fn health(object: Option<&Value>, probes: &Prober) -> (Mood, &'static str, String) {
    let Some(object) = object else {
        return (Mood::Bad, "missing", String::new());
    };
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return (Mood::Waiting, "going", String::new());
    }
    let observed = &object["status"]["observedGeneration"];
    if !observed.is_null() && *observed != object["metadata"]["generation"] {
        return (Mood::Waiting, "progressing", String::new());
    }
    let found = untyped::all(object).find(|condition| DECISIVE.contains(&condition.type_));
    match found {
        Some(found) if !found.is_true() => {
            let why = found.message.unwrap_or_default();
            (Mood::Waiting, "not ready", why.to_owned())
        }
        _ => match probes.check(object) {
            result if result.ready => (Mood::Good, "healthy", String::new()),
            result => (Mood::Waiting, "not ready", result.messages.join(" and ")),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::stand_in;

    #[tokio::test]
    async fn objects_whose_secret_is_gone_are_not_healthy() {
        let cluster = stand_in::with_lost_secret().await;
        let tree = Tree::read(&cluster, "kite").await.unwrap();
        assert!(!tree.is_healthy());
        let rows: Vec<_> = tree.phases.iter().flat_map(|(_, rows)| rows).collect();
        let [row] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!(
            (row.title().as_str(), row.message.as_str()),
            (
                "unknown object",
                "getting Secret olmv1-system/lost: secrets \"lost\" not found"
            )
        );
    }

    #[test]
    fn conditions_decide() {
        let probes = Prober::new(&olm_applier::plan::default_probes()).unwrap();
        let word = |object: Value| health(Some(&object), &probes).1;
        assert_eq!(health(None, &probes).1, "missing");
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"generation": 1},
            "status": {"observedGeneration": 1}});
        let (_, state, why) = health(Some(&set), &probes);
        assert_eq!(
            (state, why.as_str()),
            ("not ready", "0 of 1 replicas are available")
        );
        assert_eq!(word(json!({"metadata": {}})), "healthy");
        assert_eq!(
            word(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}})),
            "progressing"
        );
        let not =
            json!({"metadata": {}, "status": {"conditions": [{"type": "Available", "status": "False"}]}});
        assert_eq!(word(not), "not ready");
        assert_eq!(word(json!({"metadata": {"deletionTimestamp": "x"}})), "going");
    }
}
