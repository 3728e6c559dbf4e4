//! Verdict on upgrades of the cluster, over all installed bundles.
//!
//! On OpenShift the verdict is the condition `Upgradeable` of the `ClusterOperator` `olm`, unless cluster-olm-operator writes that
//! condition from the same revisions. On every cluster it is a metric, and an event on each extension that starts or stops blocking.
//! There is no verdict before every extension was reconciled once. An extension whose bundle cannot be read blocks, and is named.
//!
//! The extensions come from the store of their watch, whose first list is complete as of the start of this process. If the store is behind,
//! an extension that it lacks was not reconciled by this process either; its event triggers a reconcile, which triggers a verdict. An
//! extension that is gone blocks until the store knows. An extension that is not known to be deleted is waited for. So a store that is behind
//! gives the verdict of an earlier time, or none.

mod cluster;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource as _};
use olm_api::ClusterExtension;
use olm_api::event::Reason;
use olm_runtime::events::Events;
use olm_status::cluster_upgrade::{Minor, Upgradeability, evaluate};
use tokio_util::sync::CancellationToken;

use crate::cluster_extension::{CallError, Stores, chain};
use crate::inventory::{ExtensionRecord, Inventory};
use cluster::Looked;

/// Time within which changes are joined into one verdict.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// Delay after a failure, or while some extension was not reconciled yet.
const RETRY: Duration = Duration::from_secs(2);

/// Keeps the verdict up to date until `shutdown`.
pub(crate) async fn run(
    client: Client,
    inventory: Inventory,
    stores: Arc<Stores>,
    shutdown: CancellationToken,
) {
    let mut judge = Judge::new(client, inventory.clone(), stores);
    let work = async {
        loop {
            let pause = judge.next().await;
            if tokio::time::timeout(pause, inventory.changed()).await.is_ok() {
                tokio::time::sleep(DEBOUNCE).await;
                // Changes up to now are part of this verdict.
                let _ = inventory.changed().now_or_never();
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = work => {}
    }
}

/// Publisher of verdicts.
struct Judge {
    client: Client,
    inventory: Inventory,
    stores: Arc<Stores>,
    events: Events,
    cluster: Looked,
    /// Blocking extensions of the last verdict, each with the reason.
    blocking: BTreeMap<String, String>,
}

impl Judge {
    fn new(client: Client, inventory: Inventory, stores: Arc<Stores>) -> Self {
        Self {
            events: Events::new(client.clone(), "operator-controller"),
            client,
            inventory,
            stores,
            cluster: Looked::default(),
            blocking: BTreeMap::new(),
        }
    }

    /// Publishes the verdict if there is one; returns the time until the next one without a change.
    async fn next(&mut self) -> Duration {
        match self.tell().await {
            Ok(true) => self.cluster.valid_for(),
            Ok(false) => RETRY,
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "the verdict on cluster upgrades cannot be told; trying again"
                );
                RETRY
            }
        }
    }

    /// Publishes the verdict; returns false if there is none yet.
    async fn tell(&mut self) -> Result<bool, CallError> {
        let Some(existing) = self.stores.existing() else {
            return Ok(false);
        };
        if self.inventory.read(|known| is_unknown(&existing, known)) {
            return Ok(false);
        }
        let Some(cluster) = self.cluster.look(&self.client).await? else {
            return Ok(false);
        };
        let judged = self
            .inventory
            .read(|known| judge(cluster.minor(), &existing, known, &self.blocking));
        cluster.report(&self.client, &judged.verdict).await?;
        self.inventory
            .note_upgrade(judged.blocked.keys().cloned().collect());
        let next = cluster.named(judged.verdict.next);
        announce(&self.events, &judged, &self.blocking, &next);
        self.blocking = judged.blocked;
        Ok(true)
    }
}

/// Returns true if an extension was not reconciled yet. A removal is no reconcile that records an extension: one that was being removed at
/// the start would hold up every verdict.
fn is_unknown(existing: &BTreeMap<String, bool>, known: &BTreeMap<String, ExtensionRecord>) -> bool {
    existing
        .iter()
        .any(|(name, is_deleting)| !is_deleting && !known.contains_key(name))
}

/// A verdict and its extensions.
struct Judged {
    verdict: Upgradeability,
    /// Blocking extensions, each with the reason.
    blocked: BTreeMap<String, String>,
    /// uids of the existing extensions that block or blocked before.
    uids: BTreeMap<String, String>,
}

/// Returns the verdict on an upgrade from `minor`. An extension that vanished in the meantime blocks nothing.
fn judge(
    minor: Minor,
    existing: &BTreeMap<String, bool>,
    known: &BTreeMap<String, ExtensionRecord>,
    before: &BTreeMap<String, String>,
) -> Judged {
    let there = || known.iter().filter(|(name, _)| existing.contains_key(*name));
    // Without properties a bundle has no limit.
    let limited = there().filter_map(|(_, known)| known.bundle.clone().filter(|b| b.properties.is_some()));
    let unread = there().filter_map(|(name, known)| Some((name.clone(), known.unread.clone()?)));
    let verdict = evaluate(minor, &limited.collect::<Vec<_>>()).with_unread(unread);
    let limits = verdict.blockers.iter().map(|blocker| &blocker.extension);
    let named = limits.chain(verdict.errors.iter().map(|(name, _)| name));
    let blocked: BTreeMap<String, String> = named
        .filter_map(|name| Some((name.clone(), verdict.blocked_by(name)?)))
        .collect();
    let concerned: BTreeSet<&String> = blocked.keys().chain(before.keys()).collect();
    let uids = there().filter(|(name, _)| concerned.contains(name));
    Judged {
        uids: uids
            .map(|(name, known)| (name.clone(), known.uid.clone()))
            .collect(),
        verdict,
        blocked,
    }
}

/// Emits events on extensions that start or stop blocking the upgrade to `next`.
fn announce(events: &Events, judged: &Judged, before: &BTreeMap<String, String>, next: &str) {
    let now = &judged.blocked;
    for (name, why) in now.iter().filter(|(name, why)| before.get(*name) != Some(*why)) {
        let note = format!("an upgrade of the cluster to {next} is blocked: {why}");
        events.warning(
            reference(name, judged.uids.get(name)),
            Reason::ClusterUpgradeBlocked.as_str(),
            "Judge",
            &note,
        );
    }
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    for (name, uid) in gone.filter_map(|name| Some((name, judged.uids.get(name)?))) {
        let note = format!("an upgrade of the cluster to {next} is no longer blocked");
        events.normal(
            reference(name, Some(uid)),
            Reason::ClusterUpgradeUnblocked.as_str(),
            "Judge",
            &note,
        );
    }
}

fn reference(name: &str, uid: Option<&String>) -> ObjectReference {
    ObjectReference {
        api_version: Some(ClusterExtension::api_version(&()).into_owned()),
        kind: Some(ClusterExtension::kind(&()).into_owned()),
        name: Some(name.to_owned()),
        uid: uid.cloned(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests;
