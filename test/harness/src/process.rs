//! Child processes that never outlive their owner.
//!
//! Each child runs below a small `sh` script in a process group of its own. The script and the owner hold the two
//! ends of a pipe. When the owner's end closes, the script ends the child. The kernel closes the pipe on a drop, a
//! panic, an interrupt and even `kill -9` of the owner, so no code of the owner has to run.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const SUPERVISOR_SCRIPT: &str = include_str!("supervise.sh");
const POLL: Duration = Duration::from_millis(5);
/// Longest wait for the end of a child that is started again.
const RESTART_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes read from the end of a log.
const MAX_TAIL: u64 = 64 << 10;

/// Options for the start of a child process.
#[derive(Clone, Debug)]
pub struct Spawn {
    name: String,
    program: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
    grace_seconds: u32,
    visible: bool,
}

impl Spawn {
    /// Returns options for a child called `name` in messages and in its log's file name.
    pub fn new(name: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.into(),
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            directory: None,
            grace_seconds: 0,
            visible: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable of the child.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs
            .push((key.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Sets environment variables of the child.
    #[must_use]
    pub fn envs<S: AsRef<OsStr>>(self, variables: impl IntoIterator<Item = (S, S)>) -> Self {
        variables
            .into_iter()
            .fold(self, |spawn, (key, value)| spawn.env(key, value))
    }

    /// Removes an environment variable of the child.
    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.envs.push((key.as_ref().to_owned(), None));
        self
    }

    /// Sets the working directory of the child.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Stops the child with TERM, and with KILL after this many seconds. By default it gets KILL at once.
    #[must_use]
    pub fn grace_seconds(mut self, seconds: u32) -> Self {
        self.grace_seconds = seconds;
        self
    }

    /// Passes the child's stderr through to this process; the log stays empty.
    #[must_use]
    pub fn visible(mut self) -> Self {
        self.visible = true;
        self
    }

    /// Starts the child; its output is appended to `NAME.log` in `logs`.
    ///
    /// # Errors
    /// The log cannot be opened or `sh` cannot be started. A missing program results in exit status 127 and a line
    /// in the log.
    pub fn spawn(self, logs: &Path) -> Result<Process> {
        let log = logs.join(format!("{}.log", self.name));
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("cannot open {}", log.display()))?;
        let err = out
            .try_clone()
            .with_context(|| format!("cannot share {}", log.display()))?;
        let pid_file = logs.join(format!("{}.pid", self.name));
        let _ = fs::remove_file(&pid_file);
        let mut command = Command::new("/bin/sh");
        command.args([
            "-c",
            SUPERVISOR_SCRIPT,
            "supervise",
            &self.grace_seconds.to_string(),
        ]);
        command.arg(&pid_file).arg(&self.program).args(&self.args);
        for (key, value) in &self.envs {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start sh for {}", self.name))?;
        let supervisor = child.stdin.take();
        Ok(Process {
            name: self.name.clone(),
            child,
            supervisor,
            log,
            pid_file,
            grace_seconds: self.grace_seconds,
            status: None,
            options: self,
            logs: logs.to_owned(),
        })
    }
}

/// A running child process. Dropping it stops the child and waits for its exit.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    supervisor: Option<ChildStdin>,
    log: PathBuf,
    pid_file: PathBuf,
    grace_seconds: u32,
    status: Option<ExitStatus>,
    /// Options of the start, for another one.
    options: Spawn,
    logs: PathBuf,
}

impl Process {
    /// Returns the name of the child.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of the log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the child's process id, or `None` if it has not started yet.
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()
    }

    /// Returns the exit status after the exit: 128 + the number for a signal.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Returns an error with the log's tail if the child has exited.
    ///
    /// # Errors
    /// The child has exited.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.exited() {
            bail!("{} ended ({status})\n{}", self.name, self.tail(30));
        }
        Ok(())
    }

    /// Sends a signal (`"TERM"`, `"KILL"`, `"STOP"`, `"CONT"`, ...) to the child.
    ///
    /// # Errors
    /// The child has exited.
    pub fn signal(&mut self, signal: &str) -> Result<()> {
        let supervisor = self
            .supervisor
            .as_mut()
            .with_context(|| format!("{} was stopped", self.name))?;
        supervisor
            .write_all(format!("{signal}\n").as_bytes())
            .with_context(|| format!("cannot signal {}: it has ended", self.name))
    }

    /// Waits for the exit of the child.
    ///
    /// # Errors
    /// The child has not exited in time.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = self.exited() {
                return Ok(status);
            }
            if Instant::now() > end {
                bail!("{} has not ended within {timeout:?}", self.name);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Tells the child to exit, without waiting for it.
    pub fn release(&mut self) {
        self.supervisor = None;
    }

    /// Stops the child and waits for its exit.
    pub fn stop(&mut self) {
        self.release();
        let limit = Duration::from_secs(u64::from(self.grace_seconds) + 5);
        if self.wait(limit).is_err() {
            eprintln!("{} (log {}) does not end", self.name, self.log.display());
        }
    }

    /// Stops the child, and starts another one with the same options.
    ///
    /// # Errors
    /// As [`Spawn::spawn`].
    pub fn restart(&mut self) -> Result<()> {
        let former = self.pid().map(|pid| PathBuf::from(format!("/proc/{pid}")));
        self.stop();
        // The supervisor ends first; until the child has ended, too, it has its ports.
        let end = Instant::now() + RESTART_LIMIT;
        while former.as_ref().is_some_and(|former| former.exists()) && Instant::now() < end {
            std::thread::sleep(POLL);
        }
        *self = self.options.clone().spawn(&self.logs)?;
        Ok(())
    }

    /// Returns the last `lines` lines of the child's log, with a header that has the log's path.
    pub fn tail(&self, lines: usize) -> String {
        let text = tail(&self.log).unwrap_or_else(|error| format!("(unreadable: {error})"));
        let all: Vec<&str> = text.lines().collect();
        let last = all
            .get(all.len().saturating_sub(lines)..)
            .unwrap_or_default()
            .join("\n");
        format!("--- last lines of {}:\n{last}", self.log.display())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
