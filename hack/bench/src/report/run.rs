//! A whole run: measures every selected group for each implementation, as often as requested.

use anyhow::{Context as _, Result, bail};

use super::bench::Bench;
use super::build::build;
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

/// Measures all figures, prints the report, and writes it with its plots. The files are written after each group, and a group that fails
/// does not end the run. Returns the record.
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
    let mut record = Record {
        machine: Machine::here(),
        commit: machine::commit(),
        date: machine::now(),
        build: build(&programs, std::env::vars()),
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
                let measured = Box::pin(candidate.measure(group, &options)).await;
                match measured.with_context(|| format!("group {} cannot be measured {column}", group.name()))
                {
                    Ok(load) => record.load.push(load),
                    Err(error) => {
                        eprintln!("{error:#}");
                        record.failures.push(format!("{error:#}"));
                    }
                }
            }
            record.rows.clone_from(&ours.rows);
            record.beside = beside.as_ref().map(Candidate::beside);
            document::write(&record, baseline.as_ref(), &options.out)?;
        }
    }
    println!("{}", document::markdown(&record, baseline.as_ref()));
    eprintln!("report and plots: {}", options.out.display());
    judge(&record, baseline.as_ref(), options.fail_above)?;
    if options.save_baseline {
        record.save(&options.baseline)?;
    }
    Ok(record)
}

/// Returns an error if a group failed or a row is worse than in the baseline by more than `fail_above` percent.
fn judge(record: &Record, baseline: Option<&Record>, fail_above: Option<f64>) -> Result<()> {
    if !record.failures.is_empty() {
        bail!("not all rows were measured:\n{}", record.failures.join("\n"));
    }
    let (Some(percent), Some(baseline)) = (fail_above, baseline) else {
        return Ok(());
    };
    let worse = record.worse_than(baseline, percent);
    if !worse.is_empty() {
        bail!(
            "worse than the baseline by more than {percent} %:\n{}",
            worse.join("\n")
        );
    }
    Ok(())
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

    /// Returns the figures so far, if this is another implementation.
    fn beside(&self) -> Beside {
        let command = match &self.implementation {
            Implementation::Beside(command) => command.clone(),
            Implementation::Ours(_) => String::new(),
        };
        Beside {
            command,
            rows: self.rows.clone(),
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
        let ran = group.run(&mut bench, options).await;
        let load = before.until_now(name, column)?;
        // The figures before a failure count.
        merge(&mut self.rows, bench.rows);
        ran?;
        drop(bench.subject);
        self.kept = Some(bench.stage).filter(|_| options.one_plane);
        Ok(load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::record;

    #[test]
    fn a_failure_and_a_worse_row_are_errors() {
        let failed = Record {
            failures: vec!["group x".to_owned()],
            ..record(1.0)
        };
        let error = judge(&failed, None, None).unwrap_err();
        assert_eq!(error.to_string(), "not all rows were measured:\ngroup x");
        assert!(judge(&record(2.0), Some(&record(1.0)), Some(10.0)).is_err());
        assert!(judge(&record(2.0), Some(&record(1.0)), None).is_ok());
        assert!(judge(&record(1.0), Some(&record(1.0)), Some(10.0)).is_ok());
    }
}
