//! Two schedules of faults, and a kill in each stage, against the build's controllers.

use olm_faults::proxy_runs::{Options, run};
use olm_faults::scenario::Promises;
use olm_faults::{Commands, moments};

#[tokio::test(flavor = "multi_thread")]
async fn the_controllers_converge_and_keep_the_invariants_under_faults() {
    let options = Options {
        schedules: 2,
        only_seed: None,
        changes: 0,
        limit: 60,
        quiet: 500,
        limit_seconds: u64::MAX,
        traces: None,
        stale_reads: false,
    };
    let report = Box::pin(run(&Commands::default(), &options, 1, Promises::All))
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
    let report = Box::pin(moments::run(&Commands::default(), &options, 1, Promises::All))
        .await
        .unwrap();
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
}
