//! Deletion of an extension: the fate of custom resources.

use std::fmt;
use std::str::FromStr;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules for objects that the extension no longer installs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeletionConfig {
    /// Fate of custom resource definitions that hold custom resources, when the extension is deleted or a newer version
    /// no longer has them. `Keep` leaves the definition and its custom resources on the cluster. `Delete` deletes both.
    /// `Block` holds the deletion of the extension until there are no custom resources; an upgrade keeps them. If absent,
    /// the controller's flag `--custom-resources-on-delete` decides, `Keep` by default. Definitions without custom
    /// resources are always deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_resources: Option<CustomResourcePolicy>,
}

/// Policies for custom resource definitions that hold custom resources.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CustomResourcePolicy {
    /// The definition stays with its custom resources.
    #[default]
    Keep,
    /// The definition is deleted with its custom resources.
    Delete,
    /// The deletion waits until there are no custom resources.
    Block,
}

impl CustomResourcePolicy {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Keep, Self::Delete, Self::Block];

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "Keep",
            Self::Delete => "Delete",
            Self::Block => "Block",
        }
    }
}

impl fmt::Display for CustomResourcePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text that names no [`CustomResourcePolicy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is none of Keep, Delete and Block", self.0)
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for CustomResourcePolicy {
    type Err = UnknownPolicy;

    /// Reads the name in any case, as flags do.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL
            .into_iter()
            .find(|policy| policy.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownPolicy(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_api() {
        for policy in CustomResourcePolicy::ALL {
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
            assert_eq!(policy.to_string().to_lowercase().parse(), Ok(policy));
        }
        assert_eq!(
            "orphan".parse::<CustomResourcePolicy>().unwrap_err().to_string(),
            "\"orphan\" is none of Keep, Delete and Block"
        );
    }
}
