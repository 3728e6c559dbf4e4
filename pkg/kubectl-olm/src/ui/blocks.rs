//! Bundles of an upgrade graph that could not run on the cluster.

use olm_bundle::kube_version::supports;
use olm_fbc::{Bundle, PackageContent};
use olm_graph::{Graph, Outlook};
use olm_status::cluster_upgrade::{Minor, limit};

use crate::source::Cluster;

/// Maximum number of bundles whose dependencies are checked.
const DEPENDENCIES: usize = 16;

/// Marks bundles that are too new or too old for the cluster, and direct upgrades whose dependencies the cluster does not meet. What
/// cannot be read blocks nothing.
pub(super) async fn mark(cluster: &Cluster, extension: &str, content: &PackageContent, graph: &mut Graph) {
    let (kubernetes, openshift) = cluster.versions().await.unwrap_or_default();
    let openshift = openshift.as_deref().and_then(Minor::of_version);
    let mut checked = 0;
    for position in 0..graph.bundles.len() {
        let Some(node) = graph.node(position) else {
            continue;
        };
        let Some(outlook) = node.standing.as_ref().map(|standing| standing.outlook) else {
            continue;
        };
        let Some(bundle) = content.bundles.iter().find(|bundle| bundle.name == *node.name) else {
            continue;
        };
        let mut reason = by_version(bundle, &kubernetes, openshift);
        let direct = matches!(outlook, Outlook::Chosen | Outlook::Possible);
        if reason.is_none() && direct && checked < DEPENDENCIES {
            checked += 1;
            reason = by_dependencies(cluster, extension, bundle).await;
        }
        if let Some(reason) = reason {
            graph.block(position, &reason);
        }
    }
}

/// Returns the reason why a bundle does not run on the cluster's version.
fn by_version(bundle: &Bundle, kubernetes: &str, openshift: Option<Minor>) -> Option<String> {
    let needed = bundle.min_kube_version.as_deref();
    if let Some(needed) = needed
        && supports(needed, kubernetes).is_err()
    {
        return Some(format!("needs Kubernetes {needed}"));
    }
    let openshift = openshift?;
    let properties = serde_json::to_string(&bundle.properties).ok()?;
    let limit = limit(&properties).ok()??;
    (limit < openshift).then(|| format!("runs up to OpenShift {limit}"))
}

async fn by_dependencies(cluster: &Cluster, extension: &str, bundle: &Bundle) -> Option<String> {
    let unmet = cluster.unmet(&bundle.name, &bundle.properties, Some(extension), &[]);
    unmet.await.ok()??.into_iter().next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bundle(limit: &str, needed: Option<&str>) -> Bundle {
        let mut properties = vec![json!({"type": "olm.maxOpenShiftVersion", "value": limit})];
        if let Some(needed) = needed {
            properties.push(json!({"type": "olm.csv.metadata", "value": {"minKubeVersion": needed}}));
        }
        // Bundles are read from text: versions are compared as they are written.
        let text = json!({"name": "a", "image": "b", "properties": properties}).to_string();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn versions_of_the_cluster_block() {
        let minor = |text| Minor::of_version(text);
        let found = |bundle: &Bundle, openshift| by_version(bundle, "v1.35.2", openshift);
        let old = bundle("4.18", None);
        assert_eq!(found(&old, None), None, "no OpenShift, no limit");
        assert_eq!(found(&old, minor("4.18.3")), None);
        assert_eq!(
            found(&old, minor("4.19")).as_deref(),
            Some("runs up to OpenShift 4.18")
        );
        let new = bundle("4.18", Some("1.36.0"));
        assert_eq!(found(&new, None).as_deref(), Some("needs Kubernetes 1.36.0"));
        assert_eq!(found(&bundle("4.18", Some("1.35.0")), None), None);
    }
}
