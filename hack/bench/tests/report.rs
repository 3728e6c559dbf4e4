//! The smallest run of each group of `hack/bench/report`, which must write tables, JSON and plots. The figures are not judged.

#[path = "../src/report/xml.rs"]
mod xml;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use olm_bench::report::record::Record;
use olm_bench::report::row::{Measure, Row};
use olm_bench::report::{self, Group, Options};

/// Rows that no group may lose: the group, a part of the work, and the measure.
const ROWS: [(&str, &str, Measure); 17] = [
    ("single", "extension 1, create", Measure::ApiServer),
    ("single", "extension 1, create", Measure::Etcd),
    ("single", "extension 1, create", Measure::Database),
    (
        "single",
        "five-object extension with a Deployment 3, create",
        Measure::Requests,
    ),
    ("tiny", "beside 1 catalogs", Measure::Resident),
    ("cycles", "from the first to the last request", Measure::ApiServer),
    ("deletion", "by the controllers", Measure::Requests),
    ("deletion", "by a bare client", Measure::Requests),
    ("operators", "by a bare client", Measure::Etcd),
    ("catalogs", "1 catalogs of 1 MB at once", Measure::Database),
    ("catalogs", "1 catalogs of 1.", Measure::Peak),
    ("slow-clients", "idle clients", Measure::MemoryEach),
    ("catalogd", "binary", Measure::Program),
    ("catalogd", "`/all` x1, plain, 1 connection", Measure::Rate),
    ("catalogd", "`/all` x2, gzip, 4 connections", Measure::Rate),
    ("catalogd", "all loads of reads", Measure::Peak),
    ("catalogd", "after the last read", Measure::Resident),
];

/// Returns the options of the smallest run of all groups.
fn options(programs: PathBuf, work: &Path) -> Options {
    Options {
        programs,
        only: Vec::new(),
        scale: 1,
        times: 1,
        beside: None,
        baseline: work.join("none.json"),
        save_baseline: false,
        fail_above: None,
        out: work.join("report"),
        one_plane: true,
        operator: Vec::new(),
        catalogs: 0,
        catalogd: olm_bench::figures::Options::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_fails_does_not_end_the_run() -> Result<()> {
    olm_harness::tls::install_provider();
    let work = tempfile::tempdir()?;
    // There are no programs in this folder.
    let options = Options {
        only: vec![Group::Single, Group::Tiny],
        ..options(work.path().to_owned(), work.path())
    };
    let Err(error) = Box::pin(report::run(options)).await else {
        bail!("a run without programs succeeds")
    };
    let record = Record::load(&work.path().join("report/report.json"))?.context("no report was written")?;
    for failures in [format!("{error:#}"), record.failures.join("\n")] {
        for group in ["single", "tiny"] {
            ensure!(
                failures.contains(&format!("group {group} cannot be measured here")),
                "{failures}"
            );
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_run_of_each_group_makes_a_report() -> Result<()> {
    olm_harness::tls::install_provider();
    let work = tempfile::tempdir()?;
    let baseline = work.path().join("baseline.json");
    // The baseline is empty: rows without a counterpart in the baseline are no error.
    Record::default().save(&baseline)?;
    let options = Options {
        baseline: baseline.clone(),
        save_baseline: true,
        catalogs: 1,
        ..options(olm_harness::build_controllers().await?, work.path())
    };
    let record = Box::pin(report::run(options)).await?;
    let text = fs::read_to_string(work.path().join("report/report.md"))?;
    for group in Group::ALL.map(Group::name) {
        let rows = record.rows.iter().filter(|row| row.group == group);
        ensure!(rows.count() > 1, "{group} has hardly any row");
        ensure!(text.contains(&format!("\n## {group}\n")), "{group} has no table");
        let plot = fs::read_to_string(work.path().join(format!("report/{group}.svg")))?;
        let errors = xml::errors(&plot);
        ensure!(
            plot.contains("<rect") && errors.is_empty(),
            "the plot of {group}: {errors:?}"
        );
        ensure!(
            record.load.iter().any(|load| load.group == group),
            "the other load during {group} is unknown"
        );
    }
    for (group, work, measure) in ROWS {
        let is_it = |row: &&Row| row.group == group && row.work.contains(work) && row.measure == measure;
        ensure!(
            record.rows.iter().any(|row| is_it(&row)),
            "{group} has no {measure:?} of {work}"
        );
    }
    ensure!(record.build.ends_with(", debug"), "the build is {}", record.build);
    let finite = |row: &Row| row.samples.iter().all(|sample| sample.is_finite());
    ensure!(record.rows.iter().all(finite), "a figure is no number");
    let stored = Record::load(&baseline)?.context("no baseline was stored")?;
    ensure!(stored == record, "the baseline is another run");
    Ok(())
}
