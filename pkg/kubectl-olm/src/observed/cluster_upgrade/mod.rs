//! Blockers of an upgrade of the cluster among the extensions, and upgrades that wait for it.

mod waiting;

use std::collections::BTreeMap;
use std::fmt;

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, LifecycleState, keys};
use olm_status::cluster_upgrade::removed::removed;
use olm_status::cluster_upgrade::{Installed, Minor, Successor, evaluate};
use olm_text::object::{ObjectId, text as text_of};

use crate::failure::Failure;
use crate::source::{Cluster, owner};
use crate::style::Paint;

use super::Listing;
use waiting::Waiting;

pub(crate) use waiting::Upgrade;

/// An upgrade of the cluster to a minor version, with what stands in its way.
pub(crate) struct ClusterUpgrade {
    /// Present version.
    pub(crate) current: Minor,
    /// Version after the upgrade.
    pub(crate) target: Minor,
    /// Release of OpenShift of which a target of Kubernetes is the base, if any.
    pub(crate) base_of: Option<Minor>,
    /// Bundles that do not run on it.
    pub(crate) blockers: Vec<Blocker>,
    /// Limits and objects that cannot be read, a sentence each.
    pub(crate) errors: Vec<String>,
    /// Objects whose API it no longer serves.
    pub(crate) removed: Vec<RemovedApi>,
    /// Upgrades of extensions that wait for it.
    pub(crate) waiting: Waiting,
}

/// A bundle that does not run on the target.
pub(crate) struct Blocker {
    /// Its extension.
    pub(crate) extension: String,
    /// Its name.
    pub(crate) bundle: String,
    /// Highest release of OpenShift that it supports.
    pub(crate) limit: String,
    /// Version that lifts the block; none if no reachable one is known.
    pub(crate) lifted_by: Option<Lifting>,
}

/// Version that lifts a block.
pub(crate) struct Lifting {
    /// The version, with its release.
    pub(crate) version: String,
    /// Least number of upgrades that lead to it.
    pub(crate) upgrades: usize,
}

impl fmt::Display for Lifting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.upgrades {
            1 => f.write_str(&self.version),
            upgrades => write!(f, "{}, {upgrades} upgrades away", self.version),
        }
    }
}

/// An object whose API the target no longer serves.
pub(crate) struct RemovedApi {
    /// Its extension.
    pub(crate) extension: String,
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// Its API version.
    pub(crate) api_version: &'static str,
    /// Release of Kubernetes that no longer has it.
    pub(crate) removed_in: String,
    /// API that takes its place; empty if there is none.
    pub(crate) instead: &'static str,
}

impl ClusterUpgrade {
    /// Reads what an upgrade to `to` means; to the next minor version without it.
    ///
    /// # Errors
    /// A version cannot be read, or the cluster cannot.
    pub(crate) async fn read(cluster: &Cluster, to: Option<&str>) -> Result<Self, Failure> {
        let (kubernetes, openshift) = cluster.versions().await?;
        let current = openshift.as_deref().unwrap_or(&kubernetes);
        let current = Minor::of_version(current).ok_or_else(|| {
            Failure::NegativeAnswer(format!("the cluster's version {current:?} cannot be read"))
        })?;
        let target = match to {
            None => current.next(),
            Some(text) => Minor::of_version(text).ok_or_else(|| {
                Failure::Usage(format!("{text:?} is not MAJOR.MINOR, such as 1.37 or 4.19"))
            })?,
        };
        let plain = target.is_kubernetes();
        let (on_openshift, on_kubernetes) = if plain {
            (target.openshift_of_kubernetes(), Some(target))
        } else {
            (Some(target), target.kubernetes_of_openshift())
        };
        let revisions = cluster.revisions(None).await?;
        let waiting = Waiting::read(cluster, &kubernetes, on_kubernetes, &revisions).await?;
        let revisions = active_revisions(revisions);
        let installed = revisions.iter().map(|set| installed(set, &waiting.successors));
        let installed: Vec<Installed> = installed.collect();
        let verdict = on_openshift.map(|minor| evaluate(before(minor), &installed));
        let blockers = verdict.iter().flat_map(|verdict| &verdict.blockers);
        let errors = verdict.iter().flat_map(|verdict| &verdict.errors);
        let (removed, unread) = removed_apis(cluster, &revisions, on_kubernetes.unwrap_or(target)).await?;
        Ok(Self {
            current,
            target,
            base_of: on_openshift.filter(|_| plain),
            blockers: blockers
                .map(|blocker| Blocker {
                    extension: blocker.extension.clone(),
                    bundle: blocker.bundle.to_string(),
                    limit: blocker.limit.to_string(),
                    lifted_by: blocker.lifted_by.as_ref().map(|lifting| Lifting {
                        version: lifting.version.to_string(),
                        upgrades: lifting.steps,
                    }),
                })
                .collect(),
            errors: errors.map(|(_, error)| error.clone()).chain(unread).collect(),
            removed,
            waiting,
        })
    }

    /// Returns true if nothing blocks the upgrade.
    pub(crate) fn is_free(&self) -> bool {
        self.blockers.is_empty() && self.errors.is_empty() && self.removed.is_empty()
    }

    /// Returns the bundles that do not run on the target.
    pub(crate) fn blocker_listing(&self) -> Listing {
        let rows = self.blockers.iter().map(|blocker| {
            let limit = format!("OpenShift {}", blocker.limit);
            let lifting = blocker.lifted_by.as_ref();
            let lifting = lifting.map_or_else(|| "no known version".to_owned(), ToString::to_string);
            let cells = [blocker.extension.clone(), blocker.bundle.clone(), limit, lifting];
            (Paint::Bad, cells)
        });
        Listing::new(
            "Bundles that do not run on it",
            &["Extension", "Bundle", "Runs up to", "Lifted by"],
            rows,
        )
    }

    /// Returns the objects whose API the target no longer serves.
    pub(crate) fn removed_listing(&self) -> Listing {
        let rows = self.removed.iter().map(|api| {
            let object = format!("{} {}", api.kind, api.name);
            let gone = format!("{}, removed in {}", api.api_version, api.removed_in);
            (
                Paint::Bad,
                [api.extension.clone(), object, gone, api.instead.to_owned()],
            )
        });
        Listing::new(
            "APIs that it no longer serves",
            &["Extension", "Object", "API", "Instead"],
            rows,
        )
    }

    /// Returns the upgrades of extensions that wait for the target.
    pub(crate) fn waiting_listing(&self) -> Listing {
        let rows = self.waiting.upgrades.iter().map(|upgrade| {
            let needed = format!("Kubernetes {}", upgrade.needed);
            let (paint, then) = if upgrade.possible {
                (Paint::Good, "possible")
            } else {
                (Paint::Plain, "waits")
            };
            let cells = [
                upgrade.extension.clone(),
                upgrade.version.clone(),
                needed,
                then.to_owned(),
            ];
            (paint, cells)
        });
        Listing::new(
            "Upgrades of extensions that need a newer Kubernetes",
            &["Extension", "Version", "Needs", "After the upgrade"],
            rows,
        )
    }
}

/// Returns the objects whose API the target no longer serves, and a sentence for each reason why objects are unknown.
async fn removed_apis(
    cluster: &Cluster,
    revisions: &[ClusterObjectSet],
    target: Minor,
) -> Result<(Vec<RemovedApi>, Vec<String>), Failure> {
    let (mut apis, mut unread) = (Vec::new(), Vec::new());
    for set in revisions {
        for phase in cluster.objects(set).await? {
            unread.extend(phase.unresolved.iter().map(|why| {
                format!(
                    "the APIs of ClusterExtension {:?} are unknown, because objects of its revision {} cannot be read: {why}",
                    owner(set),
                    set.name_any()
                )
            }));
            for object in &phase.objects {
                let id = ObjectId::of(object);
                let Some(found) = removed(text_of(object, "/apiVersion"), id.kind, target) else {
                    continue;
                };
                apis.push(RemovedApi {
                    extension: owner(set).to_owned(),
                    kind: found.kind,
                    name: id.name.to_owned(),
                    api_version: found.api_version,
                    removed_in: format!("1.{}", found.in_minor),
                    instead: found.instead,
                });
            }
        }
    }
    Ok((apis, unread))
}

/// Returns the minor version before `minor`: the check is if bundles run on `minor` itself.
fn before(minor: Minor) -> Minor {
    // 5.0 is the same release as 4.23.
    if (minor.major, minor.minor) == (5, 0) {
        return Minor { major: 4, minor: 22 };
    }
    Minor {
        minor: minor.minor.saturating_sub(1),
        ..minor
    }
}

/// Returns the newest active revision of every extension.
fn active_revisions(revisions: Vec<ClusterObjectSet>) -> Vec<ClusterObjectSet> {
    let mut newest: Vec<ClusterObjectSet> = Vec::new();
    let active = |set: &ClusterObjectSet| {
        set.spec.lifecycle_state != LifecycleState::Archived && set.metadata.deletion_timestamp.is_none()
    };
    for set in revisions.into_iter().filter(active) {
        match newest.last_mut() {
            // Revisions are sorted by extension and number.
            Some(last) if owner(last) == owner(&set) => *last = set,
            _ => newest.push(set),
        }
    }
    newest
}

fn installed(set: &ClusterObjectSet, successors: &BTreeMap<String, Vec<Successor>>) -> Installed {
    let annotation = |key: &str| set.annotations().get(key).cloned();
    Installed {
        extension: owner(set).to_owned(),
        bundle: annotation(keys::BUNDLE_NAME_ANNOTATION)
            .unwrap_or_else(|| set.name_any())
            .into(),
        properties: annotation(keys::PROPERTIES_ANNOTATION),
        successors: successors.get(owner(set)).cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::stand_in;

    #[tokio::test]
    async fn unknown_objects_block_the_upgrade() {
        let cluster = stand_in::with_lost_secret().await;
        let upgrade = ClusterUpgrade::read(&cluster, None).await.unwrap();
        assert!(!upgrade.is_free());
        let [error] = upgrade.errors.as_slice() else {
            panic!("{:?}", upgrade.errors)
        };
        assert!(
            error.contains("ClusterExtension \"kite\"") && error.contains("\"lost\" not found"),
            "{error}"
        );
    }

    /// Returns the blockers of the upgrade to OpenShift 4.21 of a cluster whose extension kite has version 1.0.0, which runs up to 4.20, as
    /// a catalog states these other versions with their limits.
    async fn blockers(others: &[(&str, &str)]) -> Vec<[String; 4]> {
        let limit = |limit: &str| json!({"type": "olm.maxOpenShiftVersion", "value": limit});
        let mut bundles = vec![("1.0.0", vec![limit("4.20")])];
        bundles.extend(others.iter().map(|(version, last)| (*version, vec![limit(last)])));
        let mut revision = stand_in::revision(1, "1.0.0", true);
        let properties = json!([limit("4.20")]).to_string();
        let annotations = revision.annotations_mut();
        annotations.insert(keys::PROPERTIES_ANNOTATION.to_owned(), properties);
        let cluster = stand_in::with_catalog(&[revision], &stand_in::metas(&bundles)).await;
        let reading = Box::pin(ClusterUpgrade::read(&cluster, Some("4.21")));
        let upgrade = reading.await.unwrap();
        assert_eq!(upgrade.waiting.unchecked, Vec::<String>::new());
        let rows = upgrade.blocker_listing().rows.into_iter();
        rows.map(|(_, cells)| cells.try_into().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_blocker_names_the_version_that_lifts_it() {
        let row = |lifting: &str| [["kite", "kite.v1.0.0", "OpenShift 4.20", lifting].map(ToOwned::to_owned)];
        assert_eq!(blockers(&[("1.1.0", "4.21")]).await, row("1.1.0"));
        let far = blockers(&[("1.1.0", "4.20"), ("1.2.0", "4.21")]).await;
        assert_eq!(far, row("1.2.0, 2 upgrades away"));
        assert_eq!(blockers(&[("1.1.0", "4.20")]).await, row("no known version"));
    }
}
