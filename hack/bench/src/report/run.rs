//! A whole run: measures every selected group for each implementation, as often as requested.

use anyhow::{Context as _, Result, bail};

use super::bench::Bench;
use super::document;
use super::groups::Group;
use super::machine::{self, Machine};
use super::options::Options;
use super::other_load::{Moment, OtherLoad};
use super::record::{Beside, Record};
use super::row::{Row, merge};
use super::scale::Scale;
use super::stage::Stage;
use super::subject::{Implementation, Subject};

/// Measures all figures, prints the report, and writes it with its plots. Returns the record.
///
/// # Errors
/// A group cannot be measured, a file cannot be written, or a row is worse than `--fail-above` allows.
pub async fn run(options: Options) -> Result<Record> {
    let baseline = Record::load(&options.baseline)?;
    if options.fail_above.is_some() && baseline.is_none() {
        bail!(
            "--fail-above needs a baseline, and there is no {}",
            options.baseline.display()
        );
    }
    let programs = options
        .programs
        .canonicalize()
        .with_context(|| format!("there is no {}", options.programs.display()))?;
    let build = programs
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut record = Record {
        machine: Machine::here(),
        commit: machine::commit(),
        date: machine::now(),
        build,
        extensions: options.scale,
        times: options.times,
        ..Record::default()
    };
    let mut ours = Candidate::new(Implementation::Ours(programs));
    let mut beside = options
        .beside
        .clone()
        .map(|command| Candidate::new(Implementation::Beside(command)));
    for group in options.groups() {
        for time in 1..=options.times {
            // The implementations take turns, so that other load affects both equally.
            for candidate in std::iter::once(&mut ours).chain(&mut beside) {
                let column = candidate.implementation.column();
                eprintln!("{column}: {}, run {time} of {}", group.name(), options.times);
                record
                    .load
                    .push(Box::pin(candidate.measure(group, &options)).await?);
            }
        }
    }
    record.rows = ours.rows;
    record.beside = options
        .beside
        .clone()
        .zip(beside)
        .map(|(command, beside)| Beside {
            command,
            rows: beside.rows,
        });
    println!("{}", document::markdown(&record, baseline.as_ref()));
    document::write(&record, baseline.as_ref(), &options.out)?;
    eprintln!("report and plots: {}", options.out.display());
    if let (Some(percent), Some(baseline)) = (options.fail_above, &baseline) {
        let worse = record.worse_than(baseline, percent);
        if !worse.is_empty() {
            bail!(
                "worse than the baseline by more than {percent} %:\n{}",
                worse.join("\n")
            );
        }
    }
    if options.save_baseline {
        record.save(&options.baseline)?;
    }
    Ok(record)
}

/// An implementation with its figures so far.
struct Candidate {
    implementation: Implementation,
    rows: Vec<Row>,
    /// Control plane of the group before, if all groups share one.
    kept: Option<Stage>,
}

impl Candidate {
    fn new(implementation: Implementation) -> Self {
        Self {
            implementation,
            rows: Vec::new(),
            kept: None,
        }
    }

    /// Measures a group once. Returns the other load during the measurement.
    async fn measure(&mut self, group: Group, options: &Options) -> Result<OtherLoad> {
        let (name, column) = (group.name(), self.implementation.column());
        let stage = match self.kept.take() {
            Some(stage) => stage,
            None => Stage::start().await?,
        };
        // Each run has new processes with empty caches.
        let subject = Subject::start(&stage, &self.implementation).await?;
        let mut bench = Bench::new(name, stage, subject, Scale::of(options.scale));
        let before = Moment::now()?;
        group
            .run(&mut bench, options)
            .await
            .with_context(|| format!("group {name} cannot be measured {column}"))?;
        let load = before.until_now(name, column)?;
        merge(&mut self.rows, bench.rows);
        drop(bench.subject);
        self.kept = Some(bench.stage).filter(|_| options.one_plane);
        Ok(load)
    }
}
