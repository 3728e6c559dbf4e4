//! A whole run: every group, for each implementation, as often as asked for.

use anyhow::{Context as _, Result, bail};

use super::bench::Bench;
use super::document;
use super::machine::{self, Machine};
use super::options::Options;
use super::other_load::{Moment, OtherLoad};
use super::record::{Beside, Record};
use super::row::{Row, merge};
use super::scale::Scale;
use super::stage::Stage;
use super::subject::{Implementation, Subject};

/// Measures, prints the report, and writes it with its plots. Returns the record.
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
    let ours = Implementation::Ours(programs);
    record.rows = Box::pin(measure(&ours, &options, &mut record.load)).await?;
    if let Some(command) = &options.beside {
        let beside = Implementation::Beside(command.clone());
        record.beside = Some(Beside {
            command: command.clone(),
            rows: Box::pin(measure(&beside, &options, &mut record.load)).await?,
        });
    }
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

/// Measures all groups of one implementation.
async fn measure(
    implementation: &Implementation,
    options: &Options,
    load: &mut Vec<OtherLoad>,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut kept: Option<Stage> = None;
    for group in options.groups() {
        for time in 1..=options.times {
            let (name, column) = (group.name(), implementation.column());
            eprintln!("{column}: {name}, run {time} of {}", options.times);
            let stage = match kept.take() {
                Some(stage) => stage,
                None => Stage::start().await?,
            };
            // Each run has fresh processes with empty caches.
            let subject = Subject::start(&stage, implementation).await?;
            let mut bench = Bench::new(name, stage, subject, Scale::of(options.scale));
            let before = Moment::now()?;
            group
                .run(&mut bench, &options.catalogd)
                .await
                .with_context(|| format!("group {name} cannot be measured {column}"))?;
            load.push(before.until_now(name, column)?);
            merge(&mut rows, bench.rows);
            drop(bench.subject);
            kept = Some(bench.stage).filter(|_| options.one_plane);
        }
    }
    Ok(rows)
}
