//! Reads the versions of the cluster for image templates.

use std::time::Duration;

use kube::{
    Api, Client,
    core::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
};
use olm_status::cluster_upgrade::reached_version;
use olm_version::Version;
use tokio::time::timeout;

use super::image_template::ClusterVersions;

/// Timeout of one call to the API server.
const API_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the version of Kubernetes and, if asked for, that of OpenShift. A version that cannot be read is `None` and logged.
pub(super) async fn read(client: &Client, openshift: bool) -> ClusterVersions {
    let kubernetes = answered("the API server's version", client.apiserver_version()).await;
    let openshift = if openshift {
        answered("the ClusterVersion", cluster_versions(client).get("version")).await
    } else {
        None
    };
    ClusterVersions {
        kubernetes: kubernetes.and_then(|info| version(&info.git_version)),
        openshift: openshift.and_then(|object| version(reached_version(&object.data)?)),
    }
}

fn cluster_versions(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&kind, "clusterversions"),
    )
}

async fn answered<T>(what: &str, answer: impl Future<Output = kube::Result<T>>) -> Option<T> {
    match timeout(API_TIMEOUT, answer).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::warn!(error = olm_text::chain(&error), "cannot read {what}");
            None
        }
        Err(_) => {
            tracing::warn!("cannot read {what}: the API server did not answer within {API_TIMEOUT:?}");
            None
        }
    }
}

fn version(text: &str) -> Option<Version> {
    Version::parse(text.trim_start_matches('v')).ok()
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_of_distributions_are_read() {
        for text in ["v1.36.3", "v1.36.3-eks-1a2b", "1.36.3+k3s1", "v1.36.3-gke.100"] {
            let found = version(text).map(|found| (found.major, found.minor, found.patch));
            assert_eq!(found, Some((1, 36, 3)), "{text}");
        }
        assert_eq!(version("unknown"), None);
    }
}
