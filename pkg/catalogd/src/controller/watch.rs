//! Watches the ClusterCatalogs, on leader and followers alike.
//!
//! A follower pulls what the leader resolved. A replica is ready when it serves what the statuses name.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalog_state::{CatalogState, Guarded, Listed};
use crate::storage::{Store, ValidCatalogName};

/// States of all catalogs by name; `None` before the first list.
pub(super) type CatalogStates = Option<Arc<BTreeMap<ValidCatalogName, CatalogState>>>;

/// Watch of all catalogs. Clones share its state.
#[derive(Clone, Debug)]
pub struct CatalogWatch(watch::Sender<CatalogStates>);

impl Default for CatalogWatch {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl CatalogWatch {
    /// Returns a receiver of every change.
    pub fn subscribe(&self) -> watch::Receiver<CatalogStates> {
        self.0.subscribe()
    }

    /// Returns the catalogs that are deleted from now on.
    pub fn deleted(&self) -> DeletedCatalogs {
        DeletedCatalogs {
            states: self.subscribe(),
            before: None,
        }
    }

    /// Watches all catalogs until `shutdown`.
    pub async fn run(&self, client: Client, shutdown: CancellationToken) {
        let api = Api::<Guarded>::all(client);
        let events = watcher(api, watcher::Config::default().any_semantic()).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut listed = Listed::default();
        while let Some(Some(event)) = shutdown.run_until_cancelled(events.next()).await {
            match event {
                Ok(event) => {
                    if let Some(states) = listed.apply(&event) {
                        self.publish(states);
                    }
                }
                Err(error) => tracing::debug!(%error, "restarting the watch of ClusterCatalogs"),
            }
        }
    }

    fn publish(&self, listed: &BTreeMap<ValidCatalogName, CatalogState>) {
        self.0.send_if_modified(|states| {
            if states.as_deref() == Some(listed) {
                return false;
            }
            *states = Some(Arc::new(listed.clone()));
            true
        });
    }

    /// Checks that this replica serves the content that the statuses name. The leader may serve newer content than the
    /// status names, never older. Of catalogs that do not decode, the status may name content that the signature policy
    /// refuses; the other catalogs must be served in spite of them.
    ///
    /// # Errors
    /// Names the catalogs that are not served yet.
    pub fn check_serving(&self, store: &Store, is_leader: bool) -> Result<(), String> {
        let states = self.0.borrow().clone();
        let Some(states) = states else {
            return Err("the catalogs have not been listed yet".to_owned());
        };
        let missing: Vec<&str> = states
            .iter()
            .filter(|(name, state)| {
                let stands = !state.withdrawn && !state.undecodable;
                let Some(resolved) = state.resolved.as_ref().filter(|_| stands) else {
                    return false;
                };
                store
                    .get(name)
                    .is_none_or(|own| !is_leader && own.manifest().origin.resolved != *resolved)
            })
            .map(|(name, _)| name.as_str())
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "not serving yet what the status says: {}",
                missing.join(", ")
            ))
        }
    }
}

/// Catalogs deleted from the API, with or without their finalizers.
#[derive(Debug)]
pub struct DeletedCatalogs {
    states: watch::Receiver<CatalogStates>,
    before: CatalogStates,
}

impl DeletedCatalogs {
    /// Waits for deletions and returns the names of the deleted catalogs. Returns no names after the first list:
    /// earlier deletions are unknown.
    pub async fn next(&mut self) -> Vec<ValidCatalogName> {
        loop {
            let now = self.states.borrow_and_update().clone();
            let before = std::mem::replace(&mut self.before, now.clone());
            match (before, now) {
                (Some(before), Some(now)) => {
                    let is_gone = |name: &&ValidCatalogName| !now.contains_key(*name);
                    let gone: Vec<ValidCatalogName> = before.keys().filter(is_gone).cloned().collect();
                    if !gone.is_empty() {
                        return gone;
                    }
                }
                (None, Some(_)) => return Vec::new(),
                (_, None) => {}
            }
            if self.states.changed().await.is_err() {
                // The watch has ended.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::Origin;

    #[test]
    fn deleted_catalogs_are_returned_once() {
        use futures::FutureExt as _;
        let watch = CatalogWatch::default();
        let mut deleted = watch.deleted();
        let state = CatalogState::default();
        let listed = |names: &[&str]| -> BTreeMap<ValidCatalogName, CatalogState> {
            let named = |name: &&str| (ValidCatalogName::new(*name).unwrap(), state.clone());
            names.iter().map(named).collect()
        };
        assert_eq!(deleted.next().now_or_never(), None);
        watch.publish(&listed(&["a", "b", "c"]));
        assert_eq!(deleted.next().now_or_never(), Some(Vec::new()));
        assert_eq!(deleted.next().now_or_never(), None);
        watch.publish(&listed(&["b"]));
        let gone: Vec<String> = deleted
            .next()
            .now_or_never()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(gone, ["a", "c"]);
        assert_eq!(deleted.next().now_or_never(), None);
    }

    #[test]
    fn ready_when_every_status_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("catalogs")).unwrap();
        let name = ValidCatalogName::new("c").unwrap();
        let watch = CatalogWatch::default();
        assert!(watch.check_serving(&store, false).unwrap_err().contains("listed"));
        let mut listed = BTreeMap::new();
        watch.publish(&listed);
        assert_eq!(watch.check_serving(&store, false), Ok(()));
        let state = |digest: Option<&str>, withdrawn| CatalogState {
            requested: Some("registry.example/c:v1".to_owned()),
            resolved: digest.map(|digest| format!("registry.example/c@sha256:{digest}")),
            withdrawn,
            undecodable: false,
        };
        listed.insert(name.clone(), state(None, false));
        watch.publish(&listed);
        assert_eq!(
            watch.check_serving(&store, false),
            Ok(()),
            "no status names an image yet"
        );
        listed.insert(name.clone(), state(Some("aa"), false));
        watch.publish(&listed);
        for is_leader in [false, true] {
            let missing = watch.check_serving(&store, is_leader).unwrap_err();
            assert!(missing.ends_with(": c"), "{missing}");
        }
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
        let origin = |digest: &str| Origin {
            requested: "registry.example/c:v1".to_owned(),
            resolved: format!("registry.example/c@sha256:{digest}"),
            unpacked_at: 1,
            verified: None,
        };
        store.store(&name, &source, origin("aa"), 1, &|| false).unwrap();
        assert_eq!(watch.check_serving(&store, false), Ok(()));
        // The leader stores new content before it updates the status; a follower with other content is behind.
        store.store(&name, &source, origin("bb"), 1, &|| false).unwrap();
        assert_eq!(watch.check_serving(&store, true), Ok(()));
        assert!(watch.check_serving(&store, false).is_err());
        let undecodable = CatalogState {
            undecodable: true,
            ..state(Some("aa"), false)
        };
        for state in [state(Some("aa"), true), undecodable] {
            listed.insert(name.clone(), state);
            watch.publish(&listed);
            assert_eq!(
                watch.check_serving(&store, false),
                Ok(()),
                "content that is withdrawn, or whose catalog does not decode, need not be served"
            );
        }
    }
}
