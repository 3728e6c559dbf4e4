//! RBAC resource of an object's kind.

use crate::validate::{Scope as KindScope, scope_of};

/// A resource as the API serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The plural, as in the API's paths.
    pub plural: String,
    /// True if the objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// Returns the resource of `kind` without a cluster: exact for the kinds that rendering creates or a bundle may
    /// contain, otherwise the English plural, namespaced.
    pub fn of_kind(kind: &str) -> Self {
        let namespaced = match kind {
            "ValidatingWebhookConfiguration"
            | "MutatingWebhookConfiguration"
            | "Namespace"
            | "APIService" => false,
            "Deployment" | "Issuer" | "Certificate" => true,
            _ => scope_of(kind) != Some(KindScope::Cluster),
        };
        Self {
            plural: plural(kind),
            namespaced,
        }
    }
}

/// Returns the plural of a kind, as `kubectl` and code generators guess it.
fn plural(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| lower.ends_with(suffix));
    if lower == "endpoints" {
        return lower;
    }
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{lower}es");
    }
    match lower.strip_suffix('y') {
        Some(stem) if !ends(&["ay", "ey", "iy", "oy", "uy"]) => format!("{stem}ies"),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::Resource;

    #[test]
    fn plurals_and_scopes() {
        for (kind, plural, namespaced) in [
            ("Service", "services", true),
            ("NetworkPolicy", "networkpolicies", true),
            ("PriorityClass", "priorityclasses", false),
            (
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
                false,
            ),
            ("CustomResourceDefinition", "customresourcedefinitions", false),
            ("ConsoleCLIDownload", "consoleclidownloads", false),
            ("Gateway", "gateways", true),
        ] {
            let resource = Resource::of_kind(kind);
            assert_eq!(
                (resource.plural.as_str(), resource.namespaced),
                (plural, namespaced)
            );
        }
    }
}
