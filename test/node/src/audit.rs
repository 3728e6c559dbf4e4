//! Check of the product's requests in the audit log: RBAC must not refuse any of them, except for known refusals.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::cluster::SYSTEM;

/// A refusal that is accepted for a folder of `config`: the verb and the beginning of the path.
type Accepted = (&'static str, &'static str);
/// Accepted refusals for least privilege. There, operator-controller may not watch Secrets and reads those of bundles at an
/// interval; see docs/service-accounts.md.
const LEAST_PRIVILEGE: [Accepted; 1] = [("list", "/api/v1/secrets?")];

/// Requests of the product in the log so far.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Number of lines of the log that were read.
    lines: usize,
    requests: u32,
    /// Number of accepted refusals.
    accepted: u32,
    /// All other refusals.
    forbidden: BTreeSet<String>,
}

impl Audit {
    /// Reads the requests since the last call, which were made while `folder` was installed.
    pub(crate) fn read(&mut self, folder: &str) -> Result<()> {
        let accepted: &[Accepted] = if folder.ends_with("least-privilege") {
            &LEAST_PRIVILEGE
        } else {
            &[]
        };
        let run = std::env::var("RUN").context("RUN is not set")?;
        let path = format!("{run}/logs/audit.log");
        let log = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        for line in log.lines().skip(self.lines) {
            self.lines += 1;
            let event: Value = serde_json::from_str(line)?;
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let user = text("/user/username");
            if !user.starts_with(&format!("system:serviceaccount:{SYSTEM}:")) {
                continue;
            }
            self.requests += 1;
            if event["responseStatus"]["code"] != 403 {
                continue;
            }
            let (verb, path) = (text("/verb"), text("/requestURI"));
            let is_accepted = |(known, start): &Accepted| verb == *known && path.starts_with(start);
            if accepted.iter().any(is_accepted) {
                self.accepted += 1;
            } else {
                self.forbidden.insert(format!("{folder}: {user} {verb} {path}"));
            }
        }
        Ok(())
    }

    /// Fails if there was a refusal that is not accepted.
    pub(crate) fn verdict(&self) -> Result<String> {
        ensure!(
            self.requests > 100,
            "the log has {} requests of the product",
            self.requests
        );
        ensure!(self.forbidden.is_empty(), "403: {:?}", self.forbidden);
        Ok(format!(
            "{} requests, of which {} lists of Secrets were refused with least privilege",
            self.requests, self.accepted
        ))
    }
}
