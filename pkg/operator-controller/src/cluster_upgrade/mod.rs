//! Verdict on upgrades of the cluster, over all installed bundles.
//!
//! On OpenShift the verdict is the condition `Upgradeable` of the `ClusterOperator` `olm`, unless cluster-olm-operator writes that
//! condition from the same revisions. On every cluster it is a metric, and an event on each extension that starts or stops blocking.
//! There is no verdict before every extension was reconciled once. An extension whose bundle cannot be read blocks, and is named.

mod cluster;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, ListParams};
use kube::{Client, Resource as _, ResourceExt};
use olm_api::ClusterExtension;
use olm_api::event::Reason;
use olm_runtime::events::Events;
use olm_status::cluster_upgrade::{Minor, Upgradeability, evaluate};
use tokio_util::sync::CancellationToken;

use crate::cluster_extension::{CallError, call, chain};
use crate::inventory::{ExtensionRecord, Inventory};
use cluster::Cluster;

/// Time within which changes are joined into one verdict.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// Interval between reads of the cluster's version without a change of an extension.
const RESYNC: Duration = Duration::from_mins(1);
/// Delay after a failure, or while some extension was not reconciled yet.
const RETRY: Duration = Duration::from_secs(2);

/// Keeps the verdict up to date until `shutdown`.
pub(crate) async fn run(client: Client, inventory: Inventory, shutdown: CancellationToken) {
    let work = follow(client, inventory);
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = work => {}
    }
}

async fn follow(client: Client, inventory: Inventory) {
    let events = Events::new(client.clone(), "operator-controller");
    let mut blocking = BTreeMap::new();
    loop {
        let pause = match tell(&client, &inventory, &events, &mut blocking).await {
            Ok(true) => RESYNC,
            Ok(false) => RETRY,
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "the verdict on cluster upgrades cannot be told; trying again"
                );
                RETRY
            }
        };
        if tokio::time::timeout(pause, inventory.changed()).await.is_ok() {
            tokio::time::sleep(DEBOUNCE).await;
            // Changes up to now are part of this verdict.
            let _ = inventory.changed().now_or_never();
        }
    }
}

/// Publishes the verdict; returns false if there is none yet.
async fn tell(
    client: &Client,
    inventory: &Inventory,
    events: &Events,
    blocking: &mut BTreeMap<String, String>,
) -> Result<bool, CallError> {
    let mut known = inventory.known();
    let api: Api<ClusterExtension> = Api::all(client.clone());
    let list = call(
        "listing the ClusterExtensions",
        api.list_metadata(&ListParams::default()),
    )
    .await?;
    let there: BTreeSet<String> = list.items.iter().map(ResourceExt::name_any).collect();
    // A removal is no reconcile that records an extension: one that was being removed at the start would hold up every verdict.
    let mut staying = list
        .items
        .iter()
        .filter(|item| item.metadata.deletion_timestamp.is_none());
    if staying.any(|item| !known.contains_key(&item.name_any())) {
        return Ok(false);
    }
    // An extension that vanished during the evaluation blocks nothing.
    known.retain(|name, _| there.contains(name));
    let Some(cluster) = Cluster::look(client).await? else {
        return Ok(false);
    };
    let verdict = judge(cluster.minor(), &known);
    cluster.report(client, &verdict).await?;
    let blocked: BTreeMap<String, String> = known
        .keys()
        .filter_map(|name| Some((name.clone(), verdict.blocked_by(name)?)))
        .collect();
    inventory.note_upgrade(blocked.keys().cloned().collect());
    announce(events, &known, blocking, &blocked, &verdict);
    *blocking = blocked;
    Ok(true)
}

/// Returns the verdict on an upgrade from `minor`.
fn judge(minor: Minor, known: &BTreeMap<String, ExtensionRecord>) -> Upgradeability {
    let installed: Vec<_> = known.values().filter_map(|known| known.bundle.clone()).collect();
    let unread = known
        .iter()
        .filter_map(|(name, known)| Some((name.clone(), known.unread.clone()?)));
    evaluate(minor, &installed).with_unread(unread)
}

/// Emits events on extensions that start or stop blocking.
fn announce(
    events: &Events,
    known: &BTreeMap<String, ExtensionRecord>,
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    verdict: &Upgradeability,
) {
    for (name, why) in now.iter().filter(|(name, why)| before.get(*name) != Some(*why)) {
        let note = format!("an upgrade of the cluster to {} is blocked: {why}", verdict.next);
        events.warning(
            reference(name, known.get(name)),
            Reason::ClusterUpgradeBlocked.as_str(),
            "Judge",
            &note,
        );
    }
    for name in before
        .keys()
        .filter(|name| !now.contains_key(*name) && known.contains_key(*name))
    {
        let note = format!(
            "an upgrade of the cluster to {} is no longer blocked",
            verdict.next
        );
        events.normal(
            reference(name, known.get(name)),
            Reason::ClusterUpgradeUnblocked.as_str(),
            "Judge",
            &note,
        );
    }
}

fn reference(name: &str, known: Option<&ExtensionRecord>) -> ObjectReference {
    ObjectReference {
        api_version: Some(ClusterExtension::api_version(&()).into_owned()),
        kind: Some(ClusterExtension::kind(&()).into_owned()),
        name: Some(name.to_owned()),
        uid: known.map(|known| known.uid.clone()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_that_cannot_be_judged_blocks_by_name() {
        let record = |unread: Option<&str>| ExtensionRecord {
            unread: unread.map(str::to_owned),
            ..ExtensionRecord::default()
        };
        let minor = Minor { major: 4, minor: 18 };
        let mut known = BTreeMap::from([("fine".to_owned(), record(None))]);
        assert!(judge(minor, &known).upgradeable());
        known.insert("odd".to_owned(), record(Some("the Helm release is cut off")));
        let verdict = judge(minor, &known);
        assert_eq!(
            verdict.upgradeable_condition(),
            (
                "InstalledOLMOperators_FailureGettingExtensionMetadata".to_owned(),
                "InstalledOLMOperatorsUpgradeable: error returning the last deployed release for odd: the Helm release is cut off"
                    .to_owned()
            )
        );
        assert_eq!(verdict.blocked_by("fine"), None);
    }
}
