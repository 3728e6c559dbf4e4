//! Two schedules of faults, and one kill in each stage, with the controllers of this build.

use olm_faults::scenario::Promises;
use olm_faults::{Commands, Programs, Run, moments, proxy_runs};

async fn start() -> anyhow::Result<Run> {
    let programs = Programs::find(&Commands::default()).await?;
    Ok(Run::new(programs, Promises::All, 1))
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
}
