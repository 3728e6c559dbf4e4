//! What the API says that is served, watched by every replica, whether it leads or not.
//!
//! A follower pulls what the leader resolved; a replica is ready when it serves what it should.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher},
};
use olm_api::{AvailabilityMode, ClusterCatalog};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::storage::{CatalogName, Store};

type Guarded = DeserializeGuard<ClusterCatalog>;

/// What the API says of one catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The image of the spec.
    pub requested: String,
    /// What the status says is served, by digest.
    pub served: Option<String>,
    /// It is being deleted, or the user does not want it served.
    pub withdrawn: bool,
}

/// All claims by catalog; `None` before the first list.
pub(super) type Known = Option<Arc<BTreeMap<CatalogName, Claim>>>;

/// The claims, kept up to date. Clones share them.
#[derive(Clone, Debug)]
pub struct Claims(watch::Sender<Known>);

impl Default for Claims {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Claims {
    /// Tells of every change.
    pub fn subscribe(&self) -> watch::Receiver<Known> {
        self.0.subscribe()
    }

    /// Tells of catalogs that vanish from now on.
    pub fn vanished(&self) -> Vanished {
        Vanished {
            known: self.subscribe(),
            before: None,
        }
    }

    /// Watches all catalogs until `shutdown`.
    pub async fn watch(&self, client: Client, shutdown: CancellationToken) {
        let api = Api::<Guarded>::all(client);
        let events = watcher(api, watcher::Config::default().any_semantic()).default_backoff();
        let mut events = std::pin::pin!(events);
        // A list that is not complete yet, and whether there is one.
        let mut listed = BTreeMap::new();
        let mut listing = true;
        while let Some(Some(event)) = shutdown.run_until_cancelled(events.next()).await {
            match event {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    listing = true;
                }
                Ok(watcher::Event::InitApply(catalog) | watcher::Event::Apply(catalog)) => {
                    if let Some((name, claim)) = claim(&catalog) {
                        listed.insert(name, claim);
                    }
                }
                Ok(watcher::Event::Delete(catalog)) => {
                    if let Ok(name) = CatalogName::new(catalog.name_any()) {
                        listed.remove(&name);
                    }
                }
                Ok(watcher::Event::InitDone) => listing = false,
                Err(error) => {
                    tracing::debug!(%error, "the watch of catalogs starts again");
                    continue;
                }
            }
            if !listing {
                self.know(&listed);
            }
        }
    }

    fn know(&self, listed: &BTreeMap<CatalogName, Claim>) {
        self.0.send_if_modified(|known| {
            if known.as_deref() == Some(listed) {
                return false;
            }
            *known = Some(Arc::new(listed.clone()));
            true
        });
    }

    /// Whether this replica serves what the API says is served. The leader may be ahead of what it has said, never
    /// behind.
    ///
    /// # Errors
    /// What is not served yet.
    pub fn met(&self, store: &Store, leading: bool) -> Result<(), String> {
        let known = self.0.borrow().clone();
        let Some(claims) = known else {
            return Err("the catalogs have not been listed yet".to_owned());
        };
        let missing: Vec<&str> = claims
            .iter()
            .filter(|(name, claim)| {
                let Some(served) = claim.served.as_ref().filter(|_| !claim.withdrawn) else {
                    return false;
                };
                store
                    .get(name)
                    .is_none_or(|own| !leading && own.manifest().origin.resolved != *served)
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

/// The catalogs that vanish from the API, with or without their finalizers.
#[derive(Debug)]
pub struct Vanished {
    known: watch::Receiver<Known>,
    before: Known,
}

impl Vanished {
    /// Waits for catalogs that are gone. Returns their names; none after the first list, before which some may have gone.
    pub async fn next(&mut self) -> Vec<CatalogName> {
        loop {
            let now = self.known.borrow_and_update().clone();
            let before = std::mem::replace(&mut self.before, now.clone());
            match (before, now) {
                (Some(before), Some(now)) => {
                    let is_gone = |name: &&CatalogName| !now.contains_key(*name);
                    let gone: Vec<CatalogName> = before.keys().filter(is_gone).cloned().collect();
                    if !gone.is_empty() {
                        return gone;
                    }
                }
                (None, Some(_)) => return Vec::new(),
                (_, None) => {}
            }
            if self.known.changed().await.is_err() {
                // Nobody watches any more.
                std::future::pending::<()>().await;
            }
        }
    }
}

fn claim(catalog: &Guarded) -> Option<(CatalogName, Claim)> {
    // What cannot be read is told by the controller.
    let catalog = catalog.0.as_ref().ok()?;
    let name = CatalogName::new(catalog.name_any()).ok()?;
    let served = catalog
        .status
        .as_ref()
        .and_then(|status| Some(status.resolved_source.as_ref()?.image.ref_.clone()));
    let image = catalog.spec.source.image.as_ref();
    let requested = image.map(|image| image.ref_.clone());
    Some((
        name,
        Claim {
            requested: requested.or_else(|| served.clone())?,
            served,
            withdrawn: catalog.metadata.deletion_timestamp.is_some()
                || catalog.spec.availability_mode == Some(AvailabilityMode::Unavailable),
        },
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::storage::Origin;

    #[test]
    fn catalogs_that_vanish_are_told_once() {
        use futures::FutureExt as _;
        let claims = Claims::default();
        let mut vanished = claims.vanished();
        let claim = Claim {
            requested: "r".to_owned(),
            served: None,
            withdrawn: false,
        };
        let listed = |names: &[&str]| -> BTreeMap<CatalogName, Claim> {
            let named = |name: &&str| (CatalogName::new(*name).unwrap(), claim.clone());
            names.iter().map(named).collect()
        };
        assert_eq!(vanished.next().now_or_never(), None);
        claims.know(&listed(&["a", "b", "c"]));
        assert_eq!(vanished.next().now_or_never(), Some(Vec::new()));
        assert_eq!(vanished.next().now_or_never(), None);
        claims.know(&listed(&["b"]));
        let gone: Vec<String> = vanished
            .next()
            .now_or_never()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(gone, ["a", "c"]);
        assert_eq!(vanished.next().now_or_never(), None);
    }

    #[test]
    fn ready_when_all_that_is_claimed_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("catalogs")).unwrap();
        let name = CatalogName::new("c").unwrap();
        let claims = Claims::default();
        assert!(claims.met(&store, false).unwrap_err().contains("listed"));
        let mut listed = BTreeMap::new();
        claims.know(&listed);
        assert_eq!(claims.met(&store, false), Ok(()));
        let claim = |digest: Option<&str>, withdrawn| Claim {
            requested: "registry.example/c:v1".to_owned(),
            served: digest.map(|digest| format!("registry.example/c@sha256:{digest}")),
            withdrawn,
        };
        listed.insert(name.clone(), claim(None, false));
        claims.know(&listed);
        assert_eq!(
            claims.met(&store, false),
            Ok(()),
            "nothing is said to be served yet"
        );
        listed.insert(name.clone(), claim(Some("aa"), false));
        claims.know(&listed);
        for leading in [false, true] {
            let missing = claims.met(&store, leading).unwrap_err();
            assert!(missing.ends_with(": c"), "{missing}");
        }
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
        let origin = |digest: &str| Origin {
            requested: "registry.example/c:v1".to_owned(),
            resolved: format!("registry.example/c@sha256:{digest}"),
            unpacked_at: 1,
        };
        store.store(&name, &source, origin("aa"), 1, &|| false).unwrap();
        assert_eq!(claims.met(&store, false), Ok(()));
        // The leader has newer content before it says so; a follower with other content is behind.
        store.store(&name, &source, origin("bb"), 1, &|| false).unwrap();
        assert_eq!(claims.met(&store, true), Ok(()));
        assert!(claims.met(&store, false).is_err());
        listed.insert(name, claim(Some("aa"), true));
        claims.know(&listed);
        assert_eq!(claims.met(&store, false), Ok(()), "it is not wanted any more");
    }
}
