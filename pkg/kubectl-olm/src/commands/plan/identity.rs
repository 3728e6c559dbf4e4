//! Identity of a resolved bundle, as operator-controller records it.

use olm_plan::BundleIdentity;
use olm_resolve::{Request, Resolution};
use olm_version::BundleVersion;

/// Returns the identity of the bundle that a request resolves to; `image` is its image by digest.
pub(super) fn of_resolved(found: &Resolution, request: &Request, image: Option<String>) -> BundleIdentity {
    // The digest of the plan covers this spelling.
    let version = BundleVersion::spelled(found.version.clone(), request.release_support);
    BundleIdentity {
        package: request.package.to_string(),
        name: found.bundle.to_string(),
        version: version.as_str().to_owned(),
        release: version.release().map(ToOwned::to_owned),
        image,
        revision: None,
    }
}

#[cfg(test)]
mod tests {
    use olm_resolve::resolve;

    use super::*;
    use crate::source::stand_in;

    #[test]
    fn a_release_is_spelled_by_the_feature_gate() {
        let catalogs = [stand_in::catalog(&[("1.1.0+3", Vec::new())])];
        for (release_support, version, release) in [(true, "1.1.0", Some("3")), (false, "1.1.0+3", None)] {
            let request = Request {
                package: "kite".into(),
                release_support,
                ..Request::default()
            };
            let found = resolve(&request, &catalogs).unwrap();
            let identity = of_resolved(&found, &request, None);
            assert_eq!(
                (identity.version.as_str(), identity.release.as_deref()),
                (version, release)
            );
        }
    }
}
