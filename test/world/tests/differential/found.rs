//! Result of a run: its progress, and the report about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use olm_proof::{Progress, Report, Violation};

use crate::Args;

/// Name of the watches for counts.
pub(crate) const WATCH: &str = "watch of a whole sequence";
/// Number of sequences after which the report is written: an interruption loses at most these.
const SAVED: u64 = 1000;

/// Gaps: sentences about what the comparison leaves out, or the world does not do.
const NOT_COVERED: [&str; 17] = [
    "Steps of the world's garbage collector are whole; a worker of the real one reads the owners of an object while others write.",
    "A stale watch cache of kube-apiserver, which accepts an old resource version once in a while.",
    "Texts of messages, and reasons of single causes, are not compared; codes, reasons and fields of causes are.",
    "Strategic merge patches of the world are merge patches.",
    "Defaults and validation of built-in kinds: only names, labels, finalizers, owners, immutable fields of ConfigMaps, Secrets, bindings and Deployments, and rules of roles.",
    "Deployments, Services, Pods, webhooks, APIServices and Events are served, but no sequence compares them.",
    "Services get no cluster IP, and there are no workloads: no ReplicaSet, no Pod and no status of a Deployment.",
    "CRDs with several versions have no conversion but a change of apiVersion; schemas of CRDs are not validated.",
    "Escalation checks of roles and bindings are missing; aggregated roles are not compared.",
    "An empty list of a built-in object is never null.",
    "Admission webhooks, admission policies, quotas, priority and fairness, and audit are missing.",
    "Namespaces terminate without conditions in their status.",
    "Owners of objects that a finalizer holds in a terminating namespace are not compared: they depend on a race of the real controllers.",
    "The garbage collector of the world knows an owner's absence at once.",
    "Bookmarks between events, and lists that continue after a compaction, are made but not compared.",
    "CEL rules that olm-bundle cannot decide are taken to hold.",
    "The order of managed fields within one second is not compared.",
];

/// Result of a run so far.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) progress: Progress,
    /// Number of sequences of this run with differences.
    pub(crate) failed: usize,
    report: Option<PathBuf>,
    command: String,
    started: Instant,
    /// Duration of earlier runs in seconds.
    before: u64,
    unsaved: u64,
}

impl Found {
    /// Returns the result before the first sequence: nothing, or what an interrupted run has left in its report.
    ///
    /// # Errors
    /// The report cannot be read.
    pub(crate) fn start(args: &Args) -> Result<Self> {
        let progress = match &args.report {
            Some(path) => {
                let (progress, said) = Progress::continued(earlier(path)?, &args.code);
                println!("{}: {said}", path.display());
                progress
            }
            None => Progress::of_code(&args.code),
        };
        Ok(Self {
            before: progress.seconds,
            progress,
            failed: 0,
            report: args.report.clone(),
            command: format!(
                "cargo xtask world --sequences {} --seed {}",
                args.sequences, args.seed
            ),
            started: Instant::now(),
            unsaved: 0,
        })
    }

    /// Records a sequence without differences.
    ///
    /// # Errors
    /// The report cannot be written.
    pub(crate) fn pass(&mut self, seed: u64, requests: Vec<String>, varies: bool) -> Result<()> {
        self.progress.pass(seed, requests, varies);
        self.unsaved += 1;
        if self.unsaved < SAVED {
            return Ok(());
        }
        println!(
            "{} sequences in {} s",
            self.progress.len(),
            self.started.elapsed().as_secs()
        );
        self.save()
    }

    /// Records a sequence whose differences went away in a repetition, and prints them.
    ///
    /// # Errors
    /// The report cannot be written.
    pub(crate) fn vary(&mut self, seed: u64, lines: &[String], requests: Vec<String>) -> Result<()> {
        print(&format!("seed {seed}, not in all repetitions"), lines);
        self.pass(seed, requests, true)
    }

    /// Records the differences of a sequence, and prints them at once: a run can take hours.
    ///
    /// # Errors
    /// The report cannot be written.
    pub(crate) fn fail(&mut self, seed: u64, lines: Vec<String>) -> Result<()> {
        print(&format!("seed {seed}"), &lines);
        self.failed += 1;
        self.progress.fail(seed, lines);
        self.save()
    }

    /// Writes the report if one is asked for.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&mut self) -> Result<()> {
        self.unsaved = 0;
        self.progress.seconds = self.before + self.started.elapsed().as_secs();
        let Some(path) = &self.report else {
            return Ok(());
        };
        let report = Report {
            state: serde_json::to_value(&self.progress)?,
            ..self.report()
        };
        report
            .write(path)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Prints the summary, and returns true if no sequence differs.
    pub(crate) fn summary(&self) -> bool {
        let bad = self.progress.violations.len();
        println!("{self}");
        // The line that sums a test program up: the sequences are one test.
        let good = usize::from(bad == 0);
        let verdict = if bad == 0 { "ok" } else { "FAILED" };
        println!(
            "test result: {verdict}. {good} passed; {bad} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s",
            self.started.elapsed().as_secs_f64()
        );
        bad == 0
    }

    fn requests(&self) -> u64 {
        self.progress.counts.values().sum()
    }

    fn report(&self) -> Report {
        let progress = &self.progress;
        let mut figures = vec![
            (
                "sequences without differences".to_owned(),
                progress.len().to_string(),
            ),
            (
                "sequences with differences".into(),
                progress.violations.len().to_string(),
            ),
            (
                "sequences that kube-apiserver answers as the world only in some of forty repetitions".into(),
                progress.varying.len().to_string(),
            ),
            ("requests".into(), self.requests().to_string()),
        ];
        let counts = progress.counts.iter();
        figures.extend(counts.map(|(name, count)| (name.clone(), count.to_string())));
        let violations = progress.violations.iter().map(|(seed, lines)| Violation {
            invariant: "the world answers as kube-apiserver".into(),
            seed: seed.to_string(),
            text: lines.join("; "),
        });
        Report {
            title: "The world against kube-apiserver".into(),
            about: "Random sequences of requests go to the simulated API server and to kube-apiserver. Status codes, reasons, fields of causes and objects must be equal, apart from uids, resource versions and times.".into(),
            figures,
            violations: violations.collect(),
            not_covered: NOT_COVERED.map(Into::into).into(),
            command: self.command.clone(),
            ..Report::default()
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sequences with {} requests in {:.1} s: {} others with differences, {} with an answer that varies",
            self.progress.len(),
            self.requests(),
            self.started.elapsed().as_secs_f64(),
            self.progress.violations.len(),
            self.progress.varying.len()
        )
    }
}

/// Returns the progress in the report of an earlier run; none without a file, or in a report of another form.
fn earlier(path: &Path) -> Result<Option<Progress>> {
    match Report::read(path) {
        Ok(report) => Ok(serde_json::from_value(report.state).ok()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn print(title: &str, lines: &[String]) {
    println!("{title}");
    for line in lines {
        println!("  {line}");
    }
    println!();
}
