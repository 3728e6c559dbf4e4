//! A few pairs of specs on a real API server.

use olm_simulation::{Stage, real_pairs, watch_panics};

#[tokio::test(flavor = "multi_thread")]
async fn specs_follow_each_other_as_in_simulation() {
    watch_panics();
    let stage = Stage::new().unwrap();
    let report = real_pairs(&stage, 1, 8).await.unwrap();
    assert_eq!(report.violations, [], "{:#?}", report.figures);
}
