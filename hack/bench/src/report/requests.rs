//! Numbers of requests to the API server by user. They come from the audit log, so they are counted equally for every
//! implementation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use olm_harness::GrowingFile;
use serde::Deserialize;

/// Numbers of requests of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// All requests. A watch counts once, at its start.
    pub(crate) all: u32,
    /// Requests that write.
    pub(crate) writes: u32,
}

impl Requests {
    /// Returns the requests since an earlier count.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            writes: self.writes - before.writes,
        }
    }
}

/// Reader of a growing audit log.
#[derive(Debug)]
pub(crate) struct RequestLog {
    file: GrowingFile,
    by_user: BTreeMap<String, Requests>,
}

impl RequestLog {
    /// Returns a reader at the start of the log.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            file: GrowingFile::from_start(path),
            by_user: BTreeMap::new(),
        }
    }

    /// Reads the new lines of the log and returns the numbers of requests of a user so far.
    pub(crate) fn of(&mut self, user: &str) -> Result<Requests> {
        let lines = self.file.gained()?;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event = serde_json::from_slice(line).context("the audit log has a line that is no event")?;
            self.count(event);
        }
        Ok(self.by_user.get(user).copied().unwrap_or_default())
    }

    /// Counts the request of an event.
    fn count(&mut self, event: Event) {
        // A watch is logged at its start and at its end; other requests count when they are complete.
        let stage = if event.verb == "watch" {
            "ResponseStarted"
        } else {
            "ResponseComplete"
        };
        if event.stage != stage {
            return;
        }
        let requests = self.by_user.entry(event.user.username).or_default();
        requests.all += 1;
        requests.writes += u32::from(!matches!(event.verb.as_str(), "get" | "list" | "watch"));
    }
}

/// Relevant fields of a line in the log.
#[derive(Deserialize)]
struct Event {
    stage: String,
    verb: String,
    user: User,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn line(verb: &str, stage: &str, user: &str) -> String {
        format!("{{\"stage\":\"{stage}\",\"verb\":\"{verb}\",\"user\":{{\"username\":\"{user}\"}}}}\n")
    }

    #[test]
    fn a_growing_log_is_counted_once() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut log = RequestLog::new(file.path().to_owned());
        let complete = "ResponseComplete";
        let half = line("patch", complete, "a");
        let (start, end) = half.split_at(20);
        let text = [
            line("get", complete, "a"),
            line("watch", "ResponseStarted", "a"),
            line("get", complete, "b"),
            start.to_owned(),
        ];
        file.write_all(text.concat().as_bytes()).unwrap();
        let first = log.of("a").unwrap();
        assert_eq!(first, Requests { all: 2, writes: 0 });
        let text = [end.to_owned(), line("watch", complete, "a")].concat();
        file.write_all(text.as_bytes()).unwrap();
        let second = log.of("a").unwrap();
        assert_eq!(second.since(first), Requests { all: 1, writes: 1 });
        assert_eq!(log.of("nobody").unwrap(), Requests::default());
    }
}
