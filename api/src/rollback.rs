//! Records about rollouts and rollbacks in the annotations of revisions.

use serde::{Deserialize, Serialize};

/// Longest record that is read, in bytes: what an API server accepts as the annotations of one object. Versions and names of bundles
/// have no limit of their own, and a record that is written but not read again would let a failed rollout be tried again forever.
const RECORD_LIMIT: usize = 256 * 1024;

/// Inputs of a rollout. Equal inputs lead to the same revision, so a rollout that failed is not tried again with them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutAttempt {
    /// Digest of the spec, without `paused`, `rollBackTo` and `onFailure` of `spec.rollout`.
    pub spec: String,
    /// Name of the bundle.
    pub bundle: String,
    /// Version of the bundle.
    pub version: String,
    /// Image of the bundle by digest, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of the namespaces that the configuration selects by labels, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<String>,
    /// Catalog of the bundle, if it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogContent>,
}

/// Catalog at one digest.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CatalogContent {
    /// Name of the ClusterCatalog.
    pub name: String,
    /// Digest of its content.
    pub digest: String,
}

impl RolloutAttempt {
    /// Returns true unless a known input differs. An image, a catalog or namespaces that cannot be read count as unchanged.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        fn differ<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> bool {
            a.zip(b).is_some_and(|(a, b)| a != b)
        }
        self.spec == other.spec
            && self.bundle == other.bundle
            && self.version == other.version
            && !differ(self.image.as_ref(), other.image.as_ref())
            && !differ(self.namespaces.as_ref(), other.namespaces.as_ref())
            && !differ(self.catalog.as_ref(), other.catalog.as_ref())
    }
}

/// Record of a revision that has the content of a former one.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// Number of the former revision.
    pub to: i64,
    /// Number of the revision that was rolled back.
    pub from: i64,
    /// Version of the bundle that was rolled back.
    pub from_version: String,
    /// Failure that caused an automatic rollback; absent if `spec.rollout.rollBackTo` requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RolloutFailure>,
}

/// Rollout that failed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutFailure {
    /// Inputs of the rollout; they are not tried again.
    pub attempt: RolloutAttempt,
    /// Message of the failure.
    pub message: String,
}

/// Reads a record from an annotation; none if the record is too long or does not parse.
#[must_use]
pub fn read<T: serde::de::DeserializeOwned>(annotation: &str) -> Option<T> {
    (annotation.len() <= RECORD_LIMIT)
        .then(|| serde_json::from_str(annotation).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> RolloutAttempt {
        RolloutAttempt {
            spec: "sha256:aa".to_owned(),
            bundle: "a.v1.1.0".to_owned(),
            version: "1.1.0".to_owned(),
            image: Some("r/a@sha256:bb".to_owned()),
            namespaces: Some("sha256:dd".to_owned()),
            catalog: Some(CatalogContent {
                name: "c".to_owned(),
                digest: "r/c@sha256:cc".to_owned(),
            }),
        }
    }

    #[test]
    fn only_known_differences_count() {
        let failed = attempt();
        assert!(failed.is_same_as(&attempt()));
        let mut unread = attempt();
        (unread.image, unread.namespaces, unread.catalog) = (None, None, None);
        assert!(failed.is_same_as(&unread) && unread.is_same_as(&failed));
        for change in [
            |attempt: &mut RolloutAttempt| attempt.spec = "sha256:ff".to_owned(),
            |attempt: &mut RolloutAttempt| attempt.bundle = "a.v1.2.0".to_owned(),
            |attempt: &mut RolloutAttempt| attempt.version = "1.2.0".to_owned(),
            |attempt: &mut RolloutAttempt| attempt.image = Some("r/a@sha256:ff".to_owned()),
            |attempt: &mut RolloutAttempt| attempt.namespaces = Some("sha256:ff".to_owned()),
            |attempt: &mut RolloutAttempt| {
                attempt.catalog = Some(CatalogContent {
                    name: "c".to_owned(),
                    digest: "r/c@sha256:ff".to_owned(),
                });
            },
        ] {
            let mut other = attempt();
            change(&mut other);
            assert!(!failed.is_same_as(&other), "{other:?}");
        }
    }

    #[test]
    fn records_survive_annotations_and_hostile_ones_do_not() {
        let record = Rollback {
            to: 1,
            from: 2,
            from_version: "1.1.0".to_owned(),
            failure: Some(RolloutFailure {
                attempt: attempt(),
                message: "it crashes".to_owned(),
            }),
        };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(read::<Rollback>(&text).as_ref(), Some(&record));
        assert_eq!(read::<Rollback>("{}"), None);
        let mut long = read::<Rollback>(&text).unwrap();
        long.from_version = format!("1.1.0-{}", "a".repeat(20_000));
        long.failure.as_mut().unwrap().attempt.version = long.from_version.clone();
        let written = serde_json::to_string(&long).unwrap();
        assert_eq!(read(&written), Some(long), "versions have no limit");
        assert_eq!(
            read::<Rollback>(&format!("{text}{}", " ".repeat(RECORD_LIMIT))),
            None
        );
    }
}
