//! Dependencies of the wanted bundle, checked when operator-controller checks them.

use olm_decide::extension::{BundleRef, History};
use olm_plan::Change;
use olm_resolve::{Request, Resolution};
use olm_version::BundleVersion;

use crate::source::{Cluster, Joining, SourceError};

/// Adds the dependencies that are not met or cannot be read to the reasons for which operator-controller would not make the change. It
/// does not check those of a bundle that the newest revision holds already.
pub(super) async fn check(
    cluster: &Cluster,
    extension: &str,
    history: &History,
    (found, request): (&Resolution, &Request),
    joining: &[Joining],
    change: &mut Change,
) -> Result<(), SourceError> {
    let bundle = reference(found, request);
    if history
        .newest()
        .is_some_and(|newest| newest.bundle.same_bundle(&bundle))
    {
        return Ok(());
    }
    let unmet = cluster.unmet(&found.bundle, &found.properties, Some(extension), joining);
    change.refusals.extend(unmet.await?.into_iter().flatten());
    Ok(())
}

/// Returns the resolved bundle, to be compared with those of revisions.
fn reference(found: &Resolution, request: &Request) -> BundleRef {
    BundleRef {
        name: found.bundle.clone(),
        version: BundleVersion::spelled(found.version.clone(), request.release_support),
        package: request.package.clone(),
        image: found.image.clone().into(),
        catalog: Some(found.catalog.clone()),
    }
}

#[cfg(test)]
mod tests {
    use olm_api::ClusterObjectSet;
    use olm_resolve::resolve;
    use serde_json::json;

    use super::*;
    use crate::source::stand_in::{self, revision};

    /// Range that no package is in.
    const RANGE: &str = ">=1.0.0";

    fn request() -> Request {
        Request {
            package: "kite".into(),
            ..Request::default()
        }
    }

    /// Returns the bundle of a version, with one dependency.
    fn resolved(version: &str, range: &str) -> Resolution {
        let needed =
            json!({"type": "olm.package.required", "value": {"packageName": "base", "versionRange": range}});
        resolve(&request(), &[stand_in::catalog(&[(version, vec![needed])])]).unwrap()
    }

    /// Returns the refusals of a plan to a version, on a cluster without other extensions.
    async fn refusals(revisions: &[ClusterObjectSet], to: &Resolution) -> Vec<String> {
        let list = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSetList", "metadata": {}, "items": []});
        let path = "/apis/olm.operatorframework.io/v1/clusterobjectsets";
        let cluster = stand_in::cluster(&[(path, 200, list)]).await;
        let mut change = Change::default();
        let history = History::read(revisions);
        check(&cluster, "kite", &history, (to, &request()), &[], &mut change)
            .await
            .unwrap();
        change.refusals
    }

    #[tokio::test]
    async fn a_bundle_that_the_newest_revision_holds_is_not_checked_again() {
        let revisions = [revision(1, "1.0.0", true), revision(2, "1.1.0", false)];
        let rolling_out = refusals(&revisions, &resolved("1.1.0", RANGE)).await;
        assert_eq!(rolling_out, Vec::<String>::new());
        for to in ["1.2.0", "1.0.0"] {
            let refusals = refusals(&revisions, &resolved(to, RANGE)).await;
            let [refusal] = refusals.as_slice() else {
                panic!("{to}: {refusals:?}")
            };
            assert!(refusal.starts_with("it needs package \"base\""), "{refusal}");
        }
        let installed = refusals(&revisions[..1], &resolved("1.0.0", RANGE)).await;
        assert_eq!(installed, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_dependency_that_cannot_be_read_is_a_refusal() {
        let refusals = refusals(&[revision(1, "1.0.0", true)], &resolved("1.1.0", "no range")).await;
        let [refusal] = refusals.as_slice() else {
            panic!("{refusals:?}")
        };
        assert!(
            refusal.starts_with(
                "bundle \"kite.v1.1.0\" has a dependency that cannot be read: property olm.package.required"
            ),
            "{refusal}"
        );
    }
}
