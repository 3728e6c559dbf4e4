//! The smallest run of each group of `hack/bench/report`, which must write tables, JSON and plots. The figures are not judged.

#[path = "../src/report/xml.rs"]
mod xml;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use olm_bench::report::record::Record;
use olm_bench::report::{self, Group, Options};

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_run_of_each_group_makes_a_report() -> Result<()> {
    olm_harness::tls::install_provider();
    let work = tempfile::tempdir()?;
    let baseline = work.path().join("baseline.json");
    // The baseline is empty: rows without a counterpart in the baseline are no error.
    Record::default().save(&baseline)?;
    let options = Options {
        programs: olm_harness::build_controllers().await?,
        only: Vec::new(),
        scale: 1,
        times: 1,
        beside: None,
        baseline: baseline.clone(),
        save_baseline: true,
        fail_above: None,
        out: work.path().join("report"),
        one_plane: true,
        operator: Vec::new(),
        catalogd: olm_bench::figures::Options::default(),
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
    let finite = |row: &report::row::Row| row.samples.iter().all(|sample| sample.is_finite());
    ensure!(record.rows.iter().all(finite), "a figure is no number");
    let stored = Record::load(&baseline)?.context("no baseline was stored")?;
    ensure!(stored == record, "the baseline is another run");
    Ok(())
}
