//! Audit logs of the API server: their policies, and the flags that turn them on.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Name of the log in the directory of the components' logs.
pub(crate) const LOG: &str = "audit.log";
/// User as whom operator-controller runs where its writes are recorded; a member of `system:masters`.
pub const OPERATOR_CONTROLLER: &str = "operator-controller";

/// Logs every request after its response, without bodies.
const REQUESTS: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}]}"#;
/// Logs all writes with their bodies and answers, from which the state of every object at every time follows. Leases and reviews change
/// nothing of interest, and are the most frequent ones.
const WRITES: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "authorization.k8s.io"},
            {"group": "authentication.k8s.io"}, {"group": "", "resources": ["serviceaccounts/token"]}]},
        {"level": "RequestResponse"}]}"#;

/// Requests that the API server logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Audit {
    /// None.
    #[default]
    Off,
    /// All requests, without bodies.
    Requests,
    /// Writes, with their bodies and answers.
    Writes,
}

impl Audit {
    /// Writes the policy; returns the API server's flags for it.
    pub(crate) fn flags(self, dir: &Path, logs: &Path) -> Result<Vec<OsString>> {
        let text = match self {
            Self::Off => return Ok(Vec::new()),
            Self::Requests => REQUESTS,
            Self::Writes => WRITES,
        };
        let policy = dir.join("audit-policy.yaml");
        fs::write(&policy, text).with_context(|| format!("cannot write {}", policy.display()))?;
        Ok(vec![
            flag("audit-policy-file", &policy),
            flag("audit-log-path", &logs.join(LOG)),
            // One file: by default, a new one begins at 100 MB.
            OsString::from("--audit-log-maxsize=10000"),
        ])
    }
}

fn flag(name: &str, value: &Path) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_json() {
        for text in [REQUESTS, WRITES] {
            let policy: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(policy["kind"], "Policy");
        }
    }
}
