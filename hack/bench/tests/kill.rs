//! A short run of the test that `hack/bench/kill.sh` runs with two hundred kills.

use anyhow::Result;
use olm_bench::kill::{self, Options};

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_it_serves_the_old_content_or_the_new() -> Result<()> {
    olm_harness::tls::install_provider();
    let catalogd = olm_harness::build_controllers().await?.join("catalogd");
    kill::run(Options {
        catalogd,
        times: 200,
        megabytes: 2,
        seconds: Some(10),
    })
    .await
}
