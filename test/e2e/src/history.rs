//! Every status of every ClusterExtension, as a watch sees them, and what is wrong with them.
//!
//! Started with the environment, so that at the end of a run all features together prove the rules that tools live by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::core::WatchEvent;
use kube::discovery::ApiResource;
use olm_api::ClusterExtension;
use olm_harness::kstatus;
use serde_json::Value;

/// uid → every version that was seen, in order.
type Seen = BTreeMap<String, Vec<Value>>;

/// The statuses of all `ClusterExtension`s of a run.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Seen>>);

impl History {
    /// Starts to watch.
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
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = seen.entry(uid).or_default();
        // A watch that began anew tells again what is there.
        if versions.last().map(version) != Some(version(&value)) {
            versions.push(value);
        }
    }

    /// How many objects and versions were seen.
    pub fn size(&self) -> (usize, usize) {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.len(), seen.values().map(Vec::len).sum())
    }

    /// What is wrong, each with the extension's name.
    pub fn faults(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |history: &Vec<Value>| {
            let name = history
                .first()
                .map(|object| object["metadata"]["name"].to_string());
            let name = name.unwrap_or_default();
            let faults = kstatus::history_faults(history).into_iter();
            faults.map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>()
        };
        seen.values().flat_map(of).collect()
    }
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// For ever; from the beginning again whenever the API server ends it, so that no version is missed that it still knows.
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
