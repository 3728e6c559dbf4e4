//! Facts about every extension of the cluster, for metrics and for the verdict on cluster upgrades.
//!
//! The controllers write at the end of a reconcile; their decisions never read. The metrics carry names of extensions:
//! their number is bounded by the existing `ClusterExtension`s, and a removed extension disappears from them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use olm_api::condition::reasons::Extension as Reason;
use olm_api::condition::types::Extension as ConditionType;
use olm_api::condition::{Status, find};
use olm_runtime::metrics::Description;
use olm_status::cluster_upgrade::Installed;
use olm_text::name::{CatalogName, PackageName};
use olm_version::BundleVersion;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::sync::Notify;

/// Facts about one extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExtensionRecord {
    /// uid of the ClusterExtension; another one under the same name is a new extension.
    pub uid: String,
    /// Package that the spec names.
    pub package: PackageName,
    /// Installed version, if any.
    pub version: Option<BundleVersion>,
    /// Catalog of the installed bundle, if known.
    pub catalog: Option<CatalogName>,
    /// Unix time at which the support of the installed version ends, if known. A negative time is before 1970.
    pub support_end: Option<i64>,
    /// Types and statuses of the conditions.
    pub conditions: Box<[(Cow<'static, str>, Status)]>,
    /// Reason why the extension waits, if `spec.rollout` makes it wait.
    pub waiting: Option<Reason>,
    /// Bundle of the newest revision, if any: the one that can block an upgrade of the cluster.
    pub bundle: Option<Installed>,
    /// Cause for which the bundle of the newest revision cannot be read, if it was never read.
    pub unread: Option<String>,
}

/// Records of all extensions by name. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Inventory(Arc<Inner>);

#[derive(Default)]
struct Inner {
    extensions: Mutex<BTreeMap<String, ExtensionRecord>>,
    /// Number of the newest applied revision and count of its objects, by extension.
    objects: Mutex<BTreeMap<String, (i64, usize)>>,
    /// Extensions that block an upgrade of the cluster; `None` before the first verdict.
    upgrade: Mutex<Option<Vec<String>>>,
    changed: Notify,
}

impl Inventory {
    /// Records facts from revisions and catalogs; keeps the conditions and the end of support.
    pub(crate) fn note(&self, extension: &str, known: ExtensionRecord) {
        let mut all = self.0.extensions.lock();
        let entry = all.entry(extension.to_owned()).or_default();
        let (conditions, waiting) = (std::mem::take(&mut entry.conditions), entry.waiting);
        let support_end = entry.support_end.filter(|_| entry.uid == known.uid);
        let changed = entry.uid != known.uid || entry.bundle != known.bundle || entry.unread != known.unread;
        *entry = ExtensionRecord {
            support_end,
            conditions,
            waiting,
            ..known
        };
        if changed {
            self.0.changed.notify_one();
        }
    }

    /// Records an extension whose revisions cannot be read. The bundle that was read before stays known: only a rollout replaces it.
    pub(crate) fn note_unread(&self, extension: &str, known: ExtensionRecord) {
        let was_read = {
            let all = self.0.extensions.lock();
            let before = all.get(extension).filter(|before| before.uid == known.uid);
            before.is_some_and(|before| before.unread.is_none())
        };
        if !was_read {
            self.note(extension, known);
        }
    }

    /// Records the written conditions of an extension that has a record.
    pub(crate) fn note_conditions(&self, extension: &str, conditions: &[Condition]) {
        let told = conditions
            .iter()
            .map(|c| (type_text(&c.type_), Status::read(&c.status)));
        let mut all = self.0.extensions.lock();
        if let Some(known) = all.get_mut(extension) {
            known.conditions = told.collect();
            let progressing = find(conditions, ConditionType::Progressing);
            known.waiting = progressing.and_then(|condition| {
                let mut waits = WAITS.into_iter();
                waits.find(|reason| condition.reason == *reason)
            });
        }
    }

    /// Records the end of the support of an extension that has a record.
    pub(crate) fn note_support(&self, extension: &str, end: Option<i64>) {
        if let Some(known) = self.0.extensions.lock().get_mut(extension) {
            known.support_end = end;
        }
    }

    /// Records the number of objects of an applied revision.
    pub(crate) fn note_objects(&self, extension: &str, revision: i64, count: usize) {
        let mut all = self.0.objects.lock();
        let entry = all.entry(extension.to_owned()).or_insert((revision, count));
        if entry.0 <= revision {
            *entry = (revision, count);
        }
    }

    /// Drops the objects of a revision that is gone.
    pub(crate) fn forget_objects(&self, extension: &str, revision: i64) {
        let mut all = self.0.objects.lock();
        if all.get(extension).is_some_and(|(newest, _)| *newest == revision) {
            all.remove(extension);
        }
    }

    /// Drops an extension that is gone.
    pub(crate) fn forget(&self, extension: &str) {
        self.0.objects.lock().remove(extension);
        if self.0.extensions.lock().remove(extension).is_some() {
            self.0.changed.notify_one();
        }
    }

    /// Returns what `read` finds in the records. Records are not changed in the meantime, and not copied.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&BTreeMap<String, ExtensionRecord>) -> T) -> T {
        read(&self.0.extensions.lock())
    }

    /// Records the extensions that block an upgrade of the cluster.
    pub(crate) fn note_upgrade(&self, blocking: Vec<String>) {
        *self.0.upgrade.lock() = Some(blocking);
    }

    /// Waits until a bundle appears, changes or disappears. A change since the last call counts.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inventory").finish_non_exhaustive()
    }
}

const INFO: Description = Description::gauge(
    "olm_cluster_extension_info",
    &["name", "package", "version", "catalog"],
    "1 for every ClusterExtension, with its installed bundle",
);
const CONDITION: Description = Description::gauge(
    "olm_cluster_extension_condition",
    &["name", "type", "status"],
    "1 for the present status of a condition, 0 for the others",
);
/// Reasons of `Progressing` for which `spec.rollout` or the installed operator makes an extension wait.
const WAITS: [Reason; 4] = [
    Reason::AwaitingApproval,
    Reason::AwaitingWindow,
    Reason::HeldByOperator,
    Reason::Paused,
];
const WAITING: Description = Description::gauge(
    "olm_cluster_extension_waiting",
    &["name", "reason"],
    "1 for every ClusterExtension that spec.rollout or its operator makes wait: `AwaitingApproval`, `AwaitingWindow`, `HeldByOperator`, `Paused`",
);
const SUPPORT_END: Description = Description::gauge(
    "olm_cluster_extension_support_end_timestamp_seconds",
    &["name"],
    "Unix time at which the support of the installed version ends: midnight UTC after its last day; only if the catalog gives it",
);
const OBJECTS: Description = Description::gauge(
    "olm_managed_objects",
    &["name"],
    "Objects that the newest revision applies and repairs",
);
const UPGRADEABLE: Description = Description::gauge(
    "olm_cluster_upgradeable",
    &[],
    "1 if no installed bundle blocks an upgrade of the cluster to its next minor version",
);
const BLOCKS: Description = Description::gauge(
    "olm_cluster_extension_blocks_cluster_upgrade",
    &["name"],
    "1 for every ClusterExtension whose bundle blocks an upgrade of the cluster to its next minor version",
);
/// Descriptions of the metrics of extensions.
pub(crate) const DESCRIPTIONS: [Description; 7] = [
    INFO,
    CONDITION,
    WAITING,
    SUPPORT_END,
    OBJECTS,
    UPGRADEABLE,
    BLOCKS,
];

impl Collector for Inventory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.read(|known| encode_records(&mut encoder, known))?;
        let objects = self.0.objects.lock().clone();
        let objects = objects.into_iter().map(|(name, (_, count))| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            (vec![("name", name)], count)
        });
        gauges(&mut encoder, OBJECTS, objects)?;
        let Some(blocking) = self.0.upgrade.lock().clone() else {
            return Ok(());
        };
        let upgradeable = UPGRADEABLE.encode(&mut encoder)?;
        ConstGauge::new(i64::from(blocking.is_empty())).encode(upgradeable)?;
        gauges(
            &mut encoder,
            BLOCKS,
            blocking.into_iter().map(|name| (vec![("name", name)], 1)),
        )
    }
}

/// Returns the type of a condition without a copy, unless it is a type of others.
fn type_text(type_: &str) -> Cow<'static, str> {
    let known = ConditionType::ALL.iter().find(|known| known.as_str() == type_);
    known.map_or_else(|| type_.to_owned().into(), |known| known.as_str().into())
}

/// Encodes the metrics of the records.
fn encode_records(
    encoder: &mut DescriptorEncoder<'_>,
    known: &BTreeMap<String, ExtensionRecord>,
) -> Result<(), fmt::Error> {
    let info = known.iter().map(|(name, known)| {
        let labels = [
            ("name", name.clone()),
            ("package", known.package.to_string()),
            (
                "version",
                known
                    .version
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            (
                "catalog",
                known
                    .catalog
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
        ];
        (labels.to_vec(), 1)
    });
    gauges(encoder, INFO, info)?;
    let conditions = known.iter().flat_map(|(name, known)| {
        known.conditions.iter().flat_map(move |(type_, holds)| {
            Status::ALL.iter().map(move |status| {
                let labels = [
                    ("name", name.clone()),
                    ("type", type_.to_string()),
                    ("status", status.to_string()),
                ];
                (labels.to_vec(), i64::from(status == holds))
            })
        })
    });
    gauges(encoder, CONDITION, conditions)?;
    let waiting = known.iter().filter_map(|(name, known)| {
        let labels = [("name", name.clone()), ("reason", known.waiting?.to_string())];
        Some((labels.to_vec(), 1))
    });
    gauges(encoder, WAITING, waiting)?;
    let ends = known
        .iter()
        .filter_map(|(name, known)| Some((vec![("name", name.clone())], known.support_end?)));
    gauges(encoder, SUPPORT_END, ends)
}

type Labels = Vec<(&'static str, String)>;

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    description: Description,
    values: impl Iterator<Item = (Labels, i64)>,
) -> Result<(), fmt::Error> {
    let mut family = description.encode(encoder)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn an_unread_bundle_is_no_reason_to_forget_one_that_was_read() {
        let inventory = Inventory::default();
        let record = |uid: &str, unread: Option<&str>| ExtensionRecord {
            uid: uid.to_owned(),
            unread: unread.map(str::to_owned),
            ..ExtensionRecord::default()
        };
        let unread = || inventory.read(|known| known["a"].unread.clone());
        let changed = || inventory.changed().now_or_never().is_some();
        inventory.note_unread("a", record("1", Some("cut off")));
        assert!(unread().as_deref() == Some("cut off") && changed());
        inventory.note_unread("a", record("1", Some("no release")));
        assert!(unread().as_deref() == Some("no release") && changed());
        inventory.note("a", record("1", None));
        assert!(unread().is_none() && changed());
        inventory.note_unread("a", record("1", Some("cut off")));
        assert!(unread().is_none() && !changed());
        inventory.note_unread("a", record("2", Some("another extension")));
        assert!(unread().is_some() && changed());
    }

    #[test]
    fn metrics_come_and_go_with_the_extension() {
        let registry = olm_runtime::metrics::Registry::new();
        let inventory = Inventory::default();
        registry.register(|inner| inner.register_collector(Box::new(inventory.clone())));
        let known = ExtensionRecord {
            uid: "1".to_owned(),
            package: "p".into(),
            version: Some("1.0.0".into()),
            catalog: Some("c".into()),
            ..ExtensionRecord::default()
        };
        inventory.note("a", known.clone());
        assert!(inventory.changed().now_or_never().is_some());
        inventory.note("a", known);
        assert!(inventory.changed().now_or_never().is_none(), "nothing new");
        let condition = |type_: &str| {
            serde_json::json!({"type": type_, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions =
            ["Ready", "FromOthers"].map(|type_| serde_json::from_value(condition(type_)).unwrap());
        inventory.note_conditions("a", &conditions);
        inventory.note_support("a", Some(1_767_225_600));
        inventory.note_support("unknown", Some(1));
        inventory.note_objects("a", 2, 5);
        inventory.note_objects("a", 1, 4);
        inventory.note_upgrade(vec!["a".to_owned()]);
        let text = registry.encode().unwrap();
        for line in [
            "olm_cluster_extension_info{name=\"a\",package=\"p\",version=\"1.0.0\",catalog=\"c\"} 1",
            "olm_cluster_extension_support_end_timestamp_seconds{name=\"a\"} 1767225600",
            "olm_cluster_extension_condition{name=\"a\",type=\"Ready\",status=\"True\"} 1",
            "olm_cluster_extension_condition{name=\"a\",type=\"FromOthers\",status=\"False\"} 0",
            "olm_managed_objects{name=\"a\"} 5",
            "olm_cluster_upgradeable 0",
            "olm_cluster_extension_blocks_cluster_upgrade{name=\"a\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let support_end = || {
            let text = registry.encode().unwrap();
            text.contains("olm_cluster_extension_support_end_timestamp_seconds{")
        };
        inventory.note(
            "a",
            ExtensionRecord {
                uid: "1".to_owned(),
                ..ExtensionRecord::default()
            },
        );
        assert!(support_end(), "kept until a catalog is read again");
        inventory.note_support("a", None);
        assert!(!support_end());
        inventory.note_support("a", Some(1));
        inventory.note(
            "a",
            ExtensionRecord {
                uid: "2".to_owned(),
                ..ExtensionRecord::default()
            },
        );
        assert!(!support_end(), "another extension under the same name");
        inventory.forget_objects("a", 1);
        assert!(
            registry
                .encode()
                .unwrap()
                .contains("olm_managed_objects{name=\"a\"} 5")
        );
        inventory.forget_objects("a", 2);
        assert!(!registry.encode().unwrap().contains("olm_managed_objects{"));
        inventory.forget("a");
        inventory.note_upgrade(Vec::new());
        let text = registry.encode().unwrap();
        assert!(!text.contains("name=\"a\""), "{text}");
        assert!(text.contains("olm_cluster_upgradeable 1"), "{text}");
    }
}
