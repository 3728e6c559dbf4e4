//! Two schedules of faults, and one kill in each stage, with the controllers of this build.

use clap::ValueEnum as _;
use olm_faults::scenario::Promises;
use olm_faults::{Commands, Programs, Run, moments, proxy_runs};

async fn start() -> anyhow::Result<Run> {
    let programs = Programs::find(&Commands::default()).await?;
    Ok(Run::new(programs, Promises::All, 1))
}

/// Returns the number that a figure begins with. `what` is the begin of its name; the first figure of this name counts.
fn figure(figures: &[(String, String)], what: &str) -> Option<u64> {
    let (_, figure) = figures.iter().find(|(name, _)| name.starts_with(what))?;
    figure.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controllers_converge_and_keep_the_invariants_under_faults() {
    let options = proxy_runs::Options {
        schedules: 2,
        only_seed: None,
        changes: 0,
        limit: 60,
        quiet: 500,
        limit_seconds: None,
        traces: None,
        stale_reads: false,
        beside: Vec::new(),
    };
    let report = Box::pin(proxy_runs::run(&start().await.unwrap(), &options))
        .await
        .unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    let figures = &report.figures;
    assert_eq!(figure(figures, "schedules"), Some(2), "{figures:?}");
    assert!(figure(figures, "faults") > Some(0), "{figures:?}");
}

/// One kill in each stage.
#[tokio::test(flavor = "multi_thread")]
async fn the_controllers_converge_after_kills() {
    let options = moments::Options {
        moments: 1,
        stage: None,
        limit_seconds: None,
        limit: 120,
        quiet: 500,
    };
    let report = Box::pin(moments::run(&start().await.unwrap(), &options))
        .await
        .unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    for stage in moments::Killed::value_variants() {
        let kills = figure(&report.figures, &format!("{stage}: moments, spread over "));
        assert!(kills > Some(0), "{stage}: {:?}", report.figures);
    }
}
