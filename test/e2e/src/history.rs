//! History of the statuses of all ClusterExtensions, which a watch records, and the violations of kstatus' rules in it.
//!
//! The recording starts with the environment, so that the rules are checked on the statuses of all features of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::core::WatchEvent;
use kube::discovery::ApiResource;
use olm_api::ClusterExtension;
use olm_harness::kstatus;
use serde_json::Value;

/// Observed versions of each object in their order, by uid.
type Versions = BTreeMap<String, Vec<Value>>;

/// Statuses of all `ClusterExtension`s of a run.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Versions>>);

impl History {
    /// Starts the watch.
    pub fn record(client: kube::Client) -> Self {
        let history = Self::default();
        tokio::spawn(watch(client, history.clone()));
        history
    }

    fn add(&self, object: DynamicObject) {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let Ok(value) = serde_json::to_value(object) else {
            return;
        };
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = recorded.entry(uid).or_default();
        // A restarted watch repeats the current versions.
        if versions.last().map(version) != Some(version(&value)) {
            versions.push(value);
        }
    }

    /// Returns the numbers of observed objects and versions.
    pub fn size(&self) -> (usize, usize) {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (recorded.len(), recorded.values().map(Vec::len).sum())
    }

    /// Returns all violations of the rules, each with the name of the extension.
    pub fn faults(&self) -> Vec<String> {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let faults_of = |history: &Vec<Value>| {
            let name = history
                .first()
                .map(|object| object["metadata"]["name"].to_string());
            let name = name.unwrap_or_default();
            let faults = kstatus::history_faults(history).into_iter();
            faults.map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>()
        };
        recorded.values().flat_map(faults_of).collect()
    }
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// Watches forever. If the API server ends the watch, continues from the last seen version. If that version is too old, continues
/// from any version that is available.
async fn watch(client: kube::Client, history: History) {
    let kind = ApiResource::erase::<ClusterExtension>(&());
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    let mut from = "0".to_owned();
    loop {
        if let Ok(stream) = api.watch(&kube::api::WatchParams::default(), &from).await {
            let mut stream = stream.boxed();
            while let Some(Ok(event)) = stream.next().await {
                match event {
                    WatchEvent::Added(object)
                    | WatchEvent::Modified(object)
                    | WatchEvent::Deleted(object) => {
                        from = object.metadata.resource_version.clone().unwrap_or(from);
                        history.add(object);
                    }
                    WatchEvent::Bookmark(mark) => from = mark.metadata.resource_version,
                    WatchEvent::Error(_) => {
                        "0".clone_into(&mut from);
                        break;
                    }
                }
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
