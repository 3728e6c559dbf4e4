//! Sentences about objects that do not exist, with the names that the user may have meant.

use kube::ResourceExt;
use olm_api::ClusterExtension;
use olm_resolve::{did_you_mean, near_names};

use crate::failure::Failure;
use crate::source::Cluster;

/// Reads a ClusterExtension.
///
/// # Errors
/// The extension does not exist, or cannot be read.
pub(crate) async fn existing(cluster: &Cluster, name: &str) -> Result<ClusterExtension, Failure> {
    match cluster.one_extension(name).await? {
        Some(found) => Ok(found),
        None => Err(Failure::NegativeAnswer(extension(cluster, name).await)),
    }
}

/// Returns the sentence about a ClusterExtension that does not exist.
pub(crate) async fn extension(cluster: &Cluster, name: &str) -> String {
    // Without the right to list, nothing is suggested.
    let known = cluster.extensions().await.unwrap_or_default();
    sentence(
        "ClusterExtension",
        name,
        &known.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
    )
}

/// Returns the sentence about a CustomResourceDefinition that does not exist.
pub(crate) async fn crd(cluster: &Cluster, name: &str) -> String {
    sentence(
        "CustomResourceDefinition",
        name,
        &cluster.crd_names().await.unwrap_or_default(),
    )
}

/// Returns the sentence about a Namespace that does not exist.
pub(crate) async fn namespace(cluster: &Cluster, name: &str) -> String {
    sentence("Namespace", name, &cluster.namespaces().await.unwrap_or_default())
}

fn sentence(kind: &str, name: &str, known: &[String]) -> String {
    let near = near_names(name, known.iter().map(String::as_str));
    match did_you_mean(&near) {
        Some(question) => format!("there is no {kind} {name:?}. {question}"),
        None => format!("there is no {kind} {name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn near_names_are_suggested() {
        let known = ["argocd".to_owned(), "kite".to_owned()];
        assert_eq!(
            sentence("ClusterExtension", "kyte", &known),
            "there is no ClusterExtension \"kyte\". Did you mean \"kite\"?"
        );
        assert_eq!(
            sentence("ClusterExtension", "none", &known),
            "there is no ClusterExtension \"none\""
        );
    }
}
