//! Another implementation to measure, which a command starts. `report --help` shows the contract with the command.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use olm_harness::{Process, Spawn, eventually};

/// Part of `--help` about the command of `--beside`.
pub(crate) const CONTRACT: &str = "\
The command of --beside runs in a shell and starts another implementation. It gets
  KUBECONFIG            of an administrator, user operator-controller, for its operator-controller
  CATALOGD_KUBECONFIG   of an administrator, user catalogd, for its catalogd
  OLM_BENCH_REGISTRY    host:port of the registry, plain HTTP without authentication
  OLM_BENCH_SCRATCH     an empty folder for its caches and files, which is deleted in the end
The CRDs of this product and the namespace olmv1-system exist; the command may apply others.
It prints lines NAME=VALUE; the last one is
  OLM_BENCH_READY=                          all controllers work
and before it those that it knows, without which their rows are left out:
  OLM_BENCH_OPERATOR_CONTROLLER_PID=PID     for its processor time and memory
  OLM_BENCH_CATALOGD_PID=PID                for its processor time and memory
  OLM_BENCH_CATALOGD_URL=https://host:port  of catalogd's content
  OLM_BENCH_CATALOGD_CA=FILE                certificate authority of that URL, PEM
The content server listens on an IPv4 address of this machine; slow clients come from 250 to an address.
The command ends when it gets TERM, and has ended all its processes then. A restart ends it and starts it again with the same folder.
Requests count by their user, those of leader election as well. All rows use ClusterCatalogs, ClusterExtensions and the content API alone.";

/// Maximum time until the command is ready.
const START_LIMIT: Duration = Duration::from_mins(2);
/// Time after TERM until the command is killed, in seconds.
const GRACE_SECONDS: u32 = 20;
/// Prefix of the names that the command prints.
const PREFIX: &str = "OLM_BENCH_";

/// A running command with its implementation. Dropping it sends TERM.
#[derive(Debug)]
pub(crate) struct StartScript {
    process: Process,
    /// Printed values, by name without the prefix.
    said: BTreeMap<String, String>,
}

/// Values that the command gets as environment variables, and the folder of its log.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Kubeconfig of operator-controller.
    pub(crate) kubeconfig: PathBuf,
    /// Kubeconfig of catalogd.
    pub(crate) catalogd_kubeconfig: PathBuf,
    /// `host:port` of the registry.
    pub(crate) registry: String,
    /// Folder for the files of the implementation.
    pub(crate) scratch: PathBuf,
    /// Folder for the output of the command.
    pub(crate) log: PathBuf,
}

impl StartScript {
    /// Starts the command and waits until it prints that it is ready.
    pub(crate) async fn start(command: &str, environment: &Environment) -> Result<Self> {
        let process = Spawn::new("beside", "sh")
            .args(["-c", command])
            .env("KUBECONFIG", &environment.kubeconfig)
            .env("CATALOGD_KUBECONFIG", &environment.catalogd_kubeconfig)
            .env("OLM_BENCH_REGISTRY", &environment.registry)
            .env("OLM_BENCH_SCRATCH", &environment.scratch)
            .grace_seconds(GRACE_SECONDS)
            .spawn(&environment.log)?;
        let mut started = Self {
            process,
            said: BTreeMap::new(),
        };
        started.wait(0).await?;
        Ok(started)
    }

    /// Ends the command, starts it again and waits until it is ready.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.process.stop();
        let said = fs::metadata(self.process.log()).map_or(0, |log| log.len());
        self.process.restart()?;
        self.wait(usize::try_from(said)?).await
    }

    /// Ends the command.
    pub(crate) fn stop(&mut self) {
        self.process.stop();
    }

    /// Returns a value that the command printed, by its name without the prefix.
    pub(crate) fn said(&self, name: &str) -> Option<&str> {
        self.said.get(name).map(String::as_str)
    }

    /// Returns a process id that the command printed.
    pub(crate) fn pid(&self, name: &str) -> Result<Option<u32>> {
        let parse = |text: &str| {
            text.parse()
                .with_context(|| format!("{PREFIX}{name} of --beside is no process id: {text}"))
        };
        self.said(name).map(parse).transpose()
    }

    /// Waits until the command prints that it is ready. Output before the byte `from` of the log belongs to an earlier start.
    async fn wait(&mut self, from: usize) -> Result<()> {
        let ready = eventually(START_LIMIT, "the command of --beside is ready", async || {
            if let Err(ended) = self.process.check() {
                return Ok(Err(ended));
            }
            let log = fs::read(self.process.log())?;
            let text = String::from_utf8_lossy(log.get(from..).unwrap_or_default());
            let said = lines(&text);
            if !said.contains_key("READY") {
                bail!("it does not print {PREFIX}READY=");
            }
            self.said = said;
            Ok(Ok(()))
        })
        .await;
        ready.unwrap_or_else(|timeout| Err(timeout.context(self.process.tail(30))))
    }
}

/// Returns the values of all complete lines `OLM_BENCH_NAME=VALUE`.
fn lines(output: &str) -> BTreeMap<String, String> {
    output
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n')?.strip_prefix(PREFIX)?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(folder: &std::path::Path) -> Environment {
        Environment {
            kubeconfig: "admin".into(),
            catalogd_kubeconfig: "other".into(),
            registry: "127.0.0.1:5000".to_owned(),
            scratch: folder.to_owned(),
            log: folder.to_owned(),
        }
    }

    #[tokio::test]
    async fn a_command_says_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let command = "echo noise; echo OLM_BENCH_CATALOGD_URL=https://$OLM_BENCH_REGISTRY/$KUBECONFIG; \
             echo OLM_BENCH_CATALOGD_PID=$$; echo OLM_BENCH_READY=; exec sleep 600";
        let mut script = StartScript::start(command, &environment(folder.path()))
            .await
            .unwrap();
        assert_eq!(script.said("CATALOGD_URL"), Some("https://127.0.0.1:5000/admin"));
        assert_eq!(script.said("CATALOGD_CA"), None);
        let first = script.pid("CATALOGD_PID").unwrap().unwrap();
        script.restart().await.unwrap();
        assert_ne!(script.pid("CATALOGD_PID").unwrap(), Some(first));
    }

    #[tokio::test]
    async fn a_command_that_ends_is_an_error_with_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let error = StartScript::start("echo no luck; exit 3", &environment(folder.path())).await;
        let text = format!("{:#}", error.unwrap_err());
        assert!(text.contains("no luck") && text.contains("ended"), "{text}");
    }

    #[test]
    fn a_line_counts_when_it_is_complete() {
        let said = lines("OLM_BENCH_READY=\nOLM_BENCH_CATALOGD_PID=12");
        assert_eq!(said.len(), 1);
    }
}
