//! Requests of the product in the audit log.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::cluster::SYSTEM;

/// Refusals that a folder accepts: verb and start of the path.
type Accepted = (&'static str, &'static str);
/// operator-controller may not watch Secrets there, and reads those of bundles at an interval; see
/// docs/service-accounts.md.
const LEAST_PRIVILEGE: [Accepted; 1] = [("list", "/api/v1/secrets?")];

/// Requests of the product so far.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    lines: usize,
    requests: u32,
    accepted: u32,
    forbidden: BTreeSet<String>,
}

impl Audit {
    /// Reads the requests since the former call, which are those of a folder.
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

    /// Fails if a request was refused that no folder accepts.
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
