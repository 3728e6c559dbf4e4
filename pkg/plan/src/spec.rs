//! Digest of an extension's spec.

use data_encoding::HEXLOWER;
use olm_api::{ClusterExtensionSpec, RolloutConfig};
use sha2::{Digest as _, Sha256};

/// Returns the digest of the spec without the fields that pause and roll back: their change is no reason to try a failed
/// version again. The fields are `paused`, `rollBackTo` and `onFailure` of `spec.rollout`.
#[must_use]
pub fn spec_digest(spec: &ClusterExtensionSpec) -> String {
    let mut spec = spec.clone();
    if let Some(rollout) = &mut spec.rollout {
        (rollout.paused, rollout.roll_back_to, rollout.on_failure) = (None, None, None);
    }
    spec.rollout = spec
        .rollout
        .filter(|rollout| *rollout != RolloutConfig::default());
    // Maps of serde_json are sorted, so equal specs give equal bytes. A spec of the API server always has a JSON form.
    digest(&serde_json::to_vec(&spec).unwrap_or_default())
}

/// Returns the digest of names of namespaces, which contain no commas.
#[must_use]
pub fn names_digest(names: &[String]) -> String {
    digest(names.join(",").as_bytes())
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_spec_without_pause_and_request_is_one_input() {
        let digest = |rollout: &Value| {
            let spec = json!({"namespace": "n", "rollout": rollout,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "a"}}});
            spec_digest(&serde_json::from_value(spec).unwrap())
        };
        let plain = digest(&Value::Null);
        for same in [
            json!({}),
            json!({"paused": true}),
            json!({"paused": false, "rollBackTo": 3, "onFailure": "RollBack"}),
        ] {
            assert_eq!(digest(&same), plain, "{same}");
        }
        for other in [
            json!({"automatic": "Patch"}),
            json!({"approval": "Manual"}),
            json!({"soak": "1m"}),
        ] {
            assert_ne!(digest(&other), plain, "{other}");
        }
    }

    #[test]
    fn names_have_one_digest() {
        let digest =
            |names: &[&str]| names_digest(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        // printf a,b | sha256sum
        let known = "sha256:1eb7c54d52831bbfe8942af0b1c56b7409523a59ed6ca99c1174fef7eb32c1b5";
        assert_eq!(digest(&["a", "b"]), known);
    }
}
