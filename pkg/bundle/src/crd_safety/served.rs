//! Versions that the cluster serves and a new CRD does not: clients of such a version fail after the upgrade.
//!
//! Schemas do not show if a version has clients. `status.storedVersions` and the field managers of the stored objects
//! do; the caller reads them and passes them as [`VersionUses`]. Upstream allows the removal of every such version.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Finding, crd_wide, is, is_v1, stored, version_order, versions};

/// Name of the rule.
pub const SERVED_REMOVAL: &str = "servedVersionRemoval";

/// Versions that the cluster serves now and the new CRD does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedVersions {
    /// Group of the kind.
    pub group: String,
    /// Name of the kind in the API.
    pub plural: String,
    /// A version in which the objects can be listed now.
    pub read: String,
    /// A version that stays served.
    stays: Option<String>,
    /// Versions by name; the value is true if objects may be stored in the version.
    versions: BTreeMap<String, bool>,
}

/// Versions through which stored objects were written, from their metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionUses {
    /// Number of objects examined.
    pub objects: u64,
    /// True if some objects were not examined.
    pub partial: bool,
    /// A writer of each version that has one, by version.
    pub writers: BTreeMap<String, Writer>,
}

/// A write that `metadata.managedFields` records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The object: `NAMESPACE/NAME`, or `NAME`.
    pub object: String,
    /// The field manager.
    pub manager: String,
}

/// Result of the check of versions that will no longer be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedVerdict {
    /// Versions that are in use.
    pub findings: Vec<Finding>,
    /// Versions without evidence of use, each as one phrase.
    pub warnings: Vec<String>,
}

/// Returns the versions that `old` serves and `new` does not; `None` if there are none. Leaves out versions that `new`
/// lacks and in which objects may be stored: the rule `storedVersionRemoval` refuses them.
pub fn unserved_versions(old: &Value, new: &Value) -> Option<UnservedVersions> {
    if !is_v1(old) || !is_v1(new) {
        return None;
    }
    let text = |pointer: &str| old.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (before, after) = (versions(old), versions(new));
    let will = |name: &str, key| after.get(name).is_some_and(|version| is(version, key));
    let may_hold = |name: &str| stored::versions(old).any(|stored| stored == name);
    let now: BTreeMap<&str, &Value> = before
        .iter()
        .filter(|(_, version)| is(version, "served"))
        .map(|(name, version)| (*name, *version))
        .collect();
    // Storage in the version that remains the storage version is no evidence of use.
    let dropped: BTreeMap<String, bool> = now
        .keys()
        .filter(|name| !will(name, "served") && (after.contains_key(*name) || !may_hold(name)))
        .map(|name| ((*name).to_owned(), may_hold(name) && !will(name, "storage")))
        .collect();
    let stays = || now.keys().filter(|name| will(name, "served"));
    // In the storage version most objects need no conversion.
    let storage = now.iter().find(|(_, version)| is(version, "storage"));
    let read = storage.map(|(name, _)| name).or_else(|| stays().next());
    let read = read.or_else(|| now.keys().next())?;
    (!dropped.is_empty()).then(|| UnservedVersions {
        group: text("/spec/group").to_owned(),
        plural: text("/spec/names/plural").to_owned(),
        read: (*read).to_owned(),
        stays: stays()
            .max_by(|left, right| version_order::compare(left, right))
            .map(|name| (*name).to_owned()),
        versions: dropped,
    })
}

impl UnservedVersions {
    /// Returns the names of the versions.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        self.versions.keys().map(String::as_str)
    }

    /// Returns one finding for each version, as if all were in use: the findings that a waiver has to cover.
    pub fn presumed(&self) -> Vec<Finding> {
        let presumed = |version| crd_wide(SERVED_REMOVAL, head(version));
        self.versions().map(presumed).collect()
    }

    /// Returns true if there is evidence for every version, so that the search can stop.
    pub fn all_used(&self, uses: &VersionUses) -> bool {
        self.versions
            .iter()
            .all(|(version, stored)| evidence(version, *stored, uses).is_some())
    }

    /// Refuses the versions that are in use and warns of the others.
    pub fn evaluate(&self, uses: &VersionUses) -> ServedVerdict {
        let mut out = ServedVerdict::default();
        for (version, stored) in &self.versions {
            let head = head(version);
            let Some(evidence) = evidence(version, *stored, uses) else {
                let looked = if uses.partial {
                    format!("the first {} objects show no use of it", uses.objects)
                } else {
                    "no stored object shows that it is used".to_owned()
                };
                out.warnings.push(format!("{head}; {looked}"));
                continue;
            };
            let stays = self.stays.as_deref().unwrap_or("a version that stays served");
            let message = match evidence {
                Evidence::Written(Writer { object, manager }) => format!(
                    "{head}, but \"{manager}\" wrote {object} through it: move such clients to {stays} and remove their \
                     entries of {version} from metadata.managedFields, or accept this with a waiver"
                ),
                Evidence::Stored => format!(
                    "{head}, but objects may be stored in it (status.storedVersions): store them in {stays} and remove \
                     {version} from that list, or accept this with a waiver"
                ),
            };
            out.findings.push(crd_wide(SERVED_REMOVAL, message));
        }
        out
    }

    /// Warns of all versions, because their use could not be checked.
    pub fn unchecked(&self, why: &str) -> ServedVerdict {
        let warning = |version| format!("{}; its use was not checked: {why}", head(version));
        ServedVerdict {
            findings: Vec::new(),
            warnings: self.versions().map(warning).collect(),
        }
    }
}

fn head(version: &str) -> String {
    format!("version {version} is no longer served")
}

/// Evidence that a version is used.
enum Evidence<'a> {
    Written(&'a Writer),
    Stored,
}

fn evidence<'a>(version: &str, stored: bool, uses: &'a VersionUses) -> Option<Evidence<'a>> {
    let written = uses.writers.get(version).map(Evidence::Written);
    written.or_else(|| (stored && uses.objects > 0).then_some(Evidence::Stored))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{SERVED_REMOVAL, ServedVerdict, UnservedVersions, VersionUses, Writer, unserved_versions};
    use crate::crd_safety::tests::crd_with_versions as crd;
    use crate::crd_safety::{Rules, Waiver, check, waive};

    fn both() -> Value {
        crd(&[("v1alpha1", true, false), ("v1", true, true)], &["v1"])
    }

    fn written(version: &str) -> VersionUses {
        let writer = Writer {
            object: "default/one".to_owned(),
            manager: "kubectl".to_owned(),
        };
        VersionUses {
            objects: 3,
            partial: false,
            writers: [(version.to_owned(), writer)].into(),
        }
    }

    fn objects(objects: u64) -> VersionUses {
        VersionUses {
            objects,
            ..VersionUses::default()
        }
    }

    fn judged(old: &Value, new: &Value, uses: &VersionUses) -> (Vec<String>, Vec<String>) {
        let ServedVerdict { findings, warnings } = unserved_versions(old, new).unwrap().evaluate(uses);
        (findings.iter().map(ToString::to_string).collect(), warnings)
    }

    #[test]
    fn a_version_with_a_client_is_refused() {
        for new in [
            crd(&[("v1", true, true)], &[]),
            crd(&[("v1alpha1", false, false), ("v1", true, true)], &[]),
        ] {
            assert_eq!(check(&both(), &new, Rules::Ours), [], "schemas alone allow it");
            let (findings, warnings) = judged(&both(), &new, &written("v1alpha1"));
            assert_eq!(
                findings,
                [
                    "servedVersionRemoval: version v1alpha1 is no longer served, but \"kubectl\" wrote default/one through it: \
                     move such clients to v1 and remove their entries of v1alpha1 from metadata.managedFields, or accept this \
                     with a waiver"
                ]
            );
            assert_eq!(warnings, [""; 0]);
        }
    }

    #[test]
    fn without_evidence_of_use_it_is_a_warning() {
        let new = crd(&[("v1", true, true)], &[]);
        let warning = "version v1alpha1 is no longer served; no stored object shows that it is used";
        for uses in [objects(0), objects(7), written("v1")] {
            assert_eq!(judged(&both(), &new, &uses), (vec![], vec![warning.to_owned()]));
        }
        let partial = VersionUses {
            partial: true,
            ..objects(500)
        };
        let (findings, warnings) = judged(&both(), &new, &partial);
        assert_eq!(findings, [""; 0]);
        assert!(
            warnings[0].ends_with("; the first 500 objects show no use of it"),
            "{warnings:?}"
        );
        let unchecked = unserved_versions(&both(), &new).unwrap().unchecked("forbidden");
        assert_eq!(unchecked.findings, []);
        assert_eq!(
            unchecked.warnings,
            ["version v1alpha1 is no longer served; its use was not checked: forbidden"]
        );
    }

    #[test]
    fn stored_objects_count_as_use() {
        let old = crd(
            &[("v1alpha1", true, false), ("v1", true, true)],
            &["v1alpha1", "v1"],
        );
        let new = crd(&[("v1alpha1", false, false), ("v1", true, true)], &[]);
        let (findings, warnings) = judged(&old, &new, &objects(1));
        assert!(
            findings[0].contains("objects may be stored in it (status.storedVersions)"),
            "{findings:?}"
        );
        assert_eq!((findings.len(), warnings.len()), (1, 0));
        // The list keeps the names of versions without remaining objects.
        let (findings, warnings) = judged(&old, &new, &objects(0));
        assert_eq!((findings.len(), warnings.len()), (0, 1));
        // Objects continue to be stored in it.
        let kept = crd(&[("v1alpha1", false, true), ("v1", true, false)], &[]);
        let (findings, warnings) = judged(&old, &kept, &objects(1));
        assert_eq!((findings.len(), warnings.len()), (0, 1));
        // Another rule rejects that.
        let gone = crd(&[("v1", true, true)], &[]);
        assert_eq!(unserved_versions(&old, &gone), None);
        assert_eq!(check(&old, &gone, Rules::Ours)[0].rule, "storedVersionRemoval");
    }

    #[test]
    fn versions_not_served_before_or_still_served_are_ignored() {
        let unserved_before = crd(&[("v1alpha1", false, false), ("v1", true, true)], &["v1"]);
        let new = crd(&[("v1", true, true), ("v2", true, false)], &[]);
        assert_eq!(unserved_versions(&unserved_before, &new), None);
        assert_eq!(unserved_versions(&both(), &both()), None);
        assert_eq!(
            unserved_versions(&both(), &json!({"spec": {"versions": []}})),
            None
        );
    }

    #[test]
    fn objects_are_read_in_a_version_that_is_served_now() {
        let read = |old: &Value, new: &Value| {
            unserved_versions(old, new).map(|unserved: UnservedVersions| unserved.read)
        };
        let new = crd(&[("v2", true, true)], &[]);
        assert_eq!(read(&both(), &new).as_deref(), Some("v1"));
        let hidden = crd(
            &[("v0", true, false), ("v1", false, true), ("v2", true, false)],
            &["v1"],
        );
        assert_eq!(read(&hidden, &new).as_deref(), Some("v2"));
    }

    #[test]
    fn a_waiver_covers_every_version() {
        let unserved = unserved_versions(&both(), &crd(&[], &[])).unwrap();
        let waiver = Waiver {
            rule: SERVED_REMOVAL.to_owned(),
            path: String::new(),
        };
        assert_eq!(
            unserved.presumed().len(),
            1,
            "v1 is stored, which is another rule's"
        );
        assert_eq!(waive(unserved.presumed(), &[waiver]), (vec![], vec![true]));
    }
}
