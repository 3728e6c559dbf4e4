//! RBAC rule.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A rule of a `Role` or `ClusterRole`. Lists are sets: order and repetition have no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// API groups; the core group is the empty text, `*` is all.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub api_groups: BTreeSet<String>,
    /// Resources by their plural, `pods/log` for a subresource, `*` for all.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub resources: BTreeSet<String>,
    /// Names of objects; empty for all.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub resource_names: BTreeSet<String>,
    /// Paths that are not resources; excludes the three above.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "BTreeSet::is_empty")]
    pub non_resource_urls: BTreeSet<String>,
    /// Verbs; `*` for all.
    pub verbs: BTreeSet<String>,
}

impl PolicyRule {
    /// Returns the rule of `verbs` on `resource` of `group` for the objects `names`, or for all if `names` is empty.
    pub(super) fn on<'a>(
        group: &str,
        resource: &str,
        names: impl IntoIterator<Item = &'a str>,
        verbs: &[&str],
    ) -> Self {
        Self {
            api_groups: BTreeSet::from([group.to_owned()]),
            resources: BTreeSet::from([resource.to_owned()]),
            resource_names: names.into_iter().map(ToOwned::to_owned).collect(),
            non_resource_urls: BTreeSet::new(),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        }
    }

    /// Reads a rule of a role's `rules`; fields that are not lists of texts count as absent.
    pub(super) fn read(value: &Value) -> Self {
        let set = |key: &str| {
            let items = value.get(key).and_then(Value::as_array);
            let texts = items.into_iter().flatten().filter_map(Value::as_str);
            texts.map(ToOwned::to_owned).collect()
        };
        Self {
            api_groups: set("apiGroups"),
            resources: set("resources"),
            resource_names: set("resourceNames"),
            non_resource_urls: set("nonResourceURLs"),
            verbs: set("verbs"),
        }
    }

    /// Returns true if this rule grants everything that `other` grants.
    pub fn covers(&self, other: &Self) -> bool {
        if !contains_all(&self.verbs, &other.verbs, |have, want| have == want) {
            return false;
        }
        if !other.non_resource_urls.is_empty() {
            return contains_all(&self.non_resource_urls, &other.non_resource_urls, url_covers);
        }
        contains_all(&self.api_groups, &other.api_groups, |have, want| have == want)
            && contains_all(&self.resources, &other.resources, resource_covers)
            && (self.resource_names.is_empty()
                || !other.resource_names.is_empty() && other.resource_names.is_subset(&self.resource_names))
    }

    /// Returns the number of single rights: one for each verb on each resource, name or path.
    pub(super) fn count(&self) -> usize {
        let names = self.resource_names.len().max(1);
        let resources = self.api_groups.len().saturating_mul(self.resources.len());
        let objects = resources.saturating_mul(names);
        let targets = objects.saturating_add(self.non_resource_urls.len());
        targets.saturating_mul(self.verbs.len())
    }

    /// Returns true if the rule is one verb on one resource, object or path.
    pub fn is_single(&self) -> bool {
        self.count() == 1
    }

    /// Returns true if the rule grants nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.verbs.is_empty()
            || self.non_resource_urls.is_empty() && (self.api_groups.is_empty() || self.resources.is_empty())
    }
}

fn contains_all(have: &BTreeSet<String>, want: &BTreeSet<String>, covers: fn(&str, &str) -> bool) -> bool {
    have.contains("*") || want.iter().all(|want| have.iter().any(|have| covers(have, want)))
}

/// Returns true if one resource pattern includes the other; `*/scale` is the subresource of every resource.
fn resource_covers(have: &str, want: &str) -> bool {
    have == want
        || have
            .strip_prefix("*/")
            .is_some_and(|sub| want.split_once('/').is_some_and(|(_, wanted)| wanted == sub))
}

fn url_covers(have: &str, want: &str) -> bool {
    have == want
        || have
            .strip_suffix('*')
            .is_some_and(|prefix| want.starts_with(prefix))
}
