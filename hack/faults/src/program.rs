//! Programs under test as command lines, so that any implementation of the API can be tested.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use olm_harness::ports::Port;
use olm_harness::process::{Process, Spawn};
use olm_harness::scratch::Scratch;
use olm_harness::{eventually, registries_conf, tls};

/// Maximum time of a start in an environment without faults.
const START_LIMIT: Duration = Duration::from_mins(1);
/// Maximum wait for the end of a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Command line of a controller.
///
/// Spaces separate the words; quotes have no meaning. These placeholders are replaced:
///
/// - `{kubeconfig}`: path of the kubeconfig;
/// - `{cache}`: directory for the cache;
/// - `{health}`, `{metrics}` and `{content}`: addresses of free ports;
/// - `{registry}`: address of the registry, which serves plain HTTP;
/// - `{catalogd}`: address at which clients reach the content server of catalogd, which listens at `{content}`.
///
/// The environment variables `KUBECONFIG` and `CONTAINERS_REGISTRIES_CONF` are set as well.
#[derive(Clone, Debug)]
pub struct Command {
    /// Name of the program in messages and of its log.
    pub name: &'static str,
    /// The command line.
    pub text: String,
}

/// A program under test, which may run or not. Dropping it kills the process.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    words: Vec<String>,
    /// Command that the program is started by; empty for none.
    wrapper: Vec<String>,
    more_args: Vec<String>,
    envs: Vec<(String, String)>,
    cache: PathBuf,
    process: Option<Process>,
    /// Number of starts so far.
    starts: u32,
    /// Ports for `{health}`, `{metrics}` and `{content}`.
    ports: [Port; 3],
    scratch: Scratch,
}

impl Program {
    /// Prepares a program without starting it. `registry` and `catalogd` are the addresses for the placeholders.
    ///
    /// # Errors
    /// The files of the program cannot be written.
    pub fn prepare(command: &Command, kubeconfig: &Path, registry: &str, catalogd: &str) -> Result<Self> {
        let mut scratch = Scratch::new(command.name)?;
        let cache = scratch.bulky_dir("cache")?;
        let conf = scratch.path().join("registries.conf");
        std::fs::write(&conf, registries_conf::only(registry))
            .with_context(|| format!("cannot write {}", conf.display()))?;
        let ports = [Port::reserve()?, Port::reserve()?, Port::reserve()?];
        let [health, metrics, content] = &ports;
        let replace = |word: &str| {
            word.replace("{kubeconfig}", &kubeconfig.display().to_string())
                .replace("{cache}", &cache.display().to_string())
                .replace("{health}", &health.address())
                .replace("{metrics}", &metrics.address())
                .replace("{content}", &content.address())
                .replace("{registry}", registry)
                .replace("{catalogd}", catalogd)
        };
        let words: Vec<String> = command.text.split_whitespace().map(replace).collect();
        ensure!(!words.is_empty(), "the command of {} is empty", command.name);
        let envs = vec![
            ("KUBECONFIG".to_owned(), kubeconfig.display().to_string()),
            (
                "CONTAINERS_REGISTRIES_CONF".to_owned(),
                conf.display().to_string(),
            ),
            ("NO_COLOR".to_owned(), "1".to_owned()),
        ];
        Ok(Self {
            name: command.name,
            words,
            wrapper: Vec::new(),
            more_args: Vec::new(),
            envs,
            cache,
            process: None,
            starts: 0,
            ports,
            scratch,
        })
    }

    /// Adds an environment variable for the next starts.
    pub fn set_env(&mut self, key: &str, value: &str) {
        self.envs.push((key.to_owned(), value.to_owned()));
    }

    /// Sets a command that runs the program at the next starts, such as one that limits its memory; empty for none.
    pub fn set_wrapper(&mut self, words: Vec<String>) {
        self.wrapper = words;
    }

    /// Sets arguments that the next starts append to the command line.
    pub fn set_more_args(&mut self, args: Vec<String>) {
        self.more_args = args;
    }

    /// Starts the program without waiting until it is ready.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn spawn(&mut self) -> Result<()> {
        self.process = None;
        let words = [
            self.wrapper.as_slice(),
            self.words.as_slice(),
            self.more_args.as_slice(),
        ]
        .concat();
        let (program, args) = words.split_first().context("no command")?;
        let mut spawn = Spawn::new(self.name, program).args(args);
        for (key, value) in &self.envs {
            spawn = spawn.env(key, value);
        }
        self.process = Some(spawn.spawn(self.scratch.path())?);
        self.starts += 1;
        Ok(())
    }

    /// Starts the program and waits until it is ready.
    ///
    /// # Errors
    /// The program ends, or is not ready in time. The message has the tail of its log.
    pub async fn start(&mut self) -> Result<()> {
        self.spawn()?;
        self.wait_until_ready(START_LIMIT).await
    }

    /// Waits until the program answers `/readyz` at `{health}`. A program whose command lacks `{health}` counts as ready at once.
    ///
    /// # Errors
    /// The program ends, or is not ready in time. The message has the tail of its log.
    pub async fn wait_until_ready(&mut self, limit: Duration) -> Result<()> {
        let [health, ..] = &self.ports;
        let address = health.address();
        if !self.words.iter().any(|word| word.contains(&address)) {
            return Ok(());
        }
        let client = tls::http_client(None)?;
        let url = format!("http://{address}/readyz");
        let process = self.process.as_mut().context("the program is not started")?;
        let ready = eventually(limit, &format!("{} is ready", self.name), async || {
            if let Err(ended) = process.check() {
                return Ok(Err(ended));
            }
            let answer = client.get(&url).timeout(Duration::from_secs(2)).send().await?;
            answer.error_for_status()?;
            Ok(Ok(()))
        })
        .await;
        ready.unwrap_or_else(|timeout| Err(timeout.context(process.tail(30))))
    }

    /// Kills the process with SIGKILL and waits for its end. Does nothing if the process does not run.
    ///
    /// # Errors
    /// The process does not end.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        if process.exited().is_none() && process.signal("KILL").is_ok() {
            process.wait(KILL_LIMIT)?;
        }
        Ok(())
    }

    /// Returns the process, unless the program was never started or was killed.
    pub fn process(&mut self) -> Option<&mut Process> {
        self.process.as_mut()
    }

    /// Returns the number of starts so far.
    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// Returns the address that replaces `{content}`.
    pub fn content_address(&self) -> String {
        let [_, _, content] = &self.ports;
        content.address()
    }

    /// Returns the cache directory, which stays over restarts.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the path of the log, which has the output of all starts.
    pub fn log(&self) -> PathBuf {
        self.scratch.path().join(format!("{}.log", self.name))
    }

    /// Keeps the log when the program is dropped.
    pub fn keep_logs(&mut self) {
        self.scratch.keep();
    }

    /// Fails with the tail of the log if the process has ended by itself.
    ///
    /// # Errors
    /// The process has ended.
    pub fn check(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::check)
    }
}
