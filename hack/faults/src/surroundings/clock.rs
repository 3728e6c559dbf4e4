//! A clock that jumps: both programs see another time of day than the machine, while their timers go on.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::{Span, Timestamp};
use kube::Api;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use tokio::time::{Instant, sleep};

use super::reach;
use super::seen::Which;
use crate::{Scenario, Stage, World};

/// Places of libfaketime; Debian's, of the package `libfaketime`, and that of builds from source.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
];
/// Lease of operator-controller.
const LEASE: &str = "9c4404e7.operatorframework.io";
/// Time from a change to the jump: the controllers are at work.
const IN_THE_MIDDLE: Duration = Duration::from_millis(300);
/// Longest wait for a renewal of the lease.
const RENEWAL: Duration = Duration::from_mins(1);

/// Returns the reason why a clock cannot jump here.
pub(super) fn missing() -> Option<String> {
    library().is_none().then(|| {
        let places = LIBRARIES.join(", ");
        format!("libfaketime is not installed ({places})")
    })
}

fn library() -> Option<PathBuf> {
    LIBRARIES.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Lets the clock of both programs jump a day ahead during an installation, and to an hour before the true time during an upgrade. In
/// the end both programs restart an hour ago, with a lease and certificates from the future.
pub(super) async fn jump(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    let library = library().context("libfaketime is gone")?;
    let clock = tempfile::NamedTempFile::new().context("cannot create a file for the clock")?;
    let set = |offset: &str| fs::write(clock.path(), offset).context("cannot set the clock");
    set("+0")?;
    let wrapper = [
        "env".to_owned(),
        format!("LD_PRELOAD={}", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", clock.path().display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        // Timers do not jump with the time of day.
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ];
    for which in [Which::Catalogd, Which::Controller] {
        let program = which.of(world);
        program.set_wrapper(wrapper.to_vec());
        program.set_more_args(vec!["--leader-elect=true".to_owned()]);
    }
    let result = jump_twice(world, scenario, set).await;
    for which in [Which::Catalogd, Which::Controller] {
        let program = which.of(world);
        program.set_wrapper(Vec::new());
        program.set_more_args(Vec::new());
    }
    restart(world).await?;
    result
}

async fn jump_twice(
    world: &mut World,
    scenario: &mut Scenario,
    set: impl Fn(&str) -> Result<()>,
) -> Result<String> {
    restart(world).await?;
    scenario.perform(&world.client(), Stage::Install).await?;
    sleep(IN_THE_MIDDLE).await;
    set("+1d")?;
    reach(world, scenario)
        .await
        .context("after a jump of a day ahead")?;
    renewed(world, Span::new().hours(23), Span::new().hours(25)).await?;
    scenario.perform(&world.client(), Stage::Upgrade).await?;
    sleep(IN_THE_MIDDLE).await;
    set("-1h")?;
    reach(world, scenario)
        .await
        .context("after a jump to an hour ago")?;
    renewed(world, Span::new().minutes(-61), Span::new().minutes(-59)).await?;
    scenario.perform(&world.client(), Stage::RollBack).await?;
    restart(world).await?;
    reach(world, scenario)
        .await
        .context("after a restart an hour ago")?;
    Ok("nothing: leases were renewed a day ahead and an hour ago".to_owned())
}

async fn restart(world: &mut World) -> Result<()> {
    for which in [Which::Catalogd, Which::Controller] {
        let program = which.of(world);
        program.kill()?;
        program.start().await?;
    }
    Ok(())
}

/// Waits until operator-controller has renewed its lease at a time between these distances from the true time: its clock has jumped.
async fn renewed(world: &World, from: Span, to: Span) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(world.client(), SYSTEM_NAMESPACE);
    let begin = Instant::now();
    loop {
        let spec = leases.get(LEASE).await?.spec.unwrap_or_default();
        let renewed = spec.renew_time.context("the lease was never renewed")?.0;
        let now = Timestamp::now();
        if (now + from..now + to).contains(&renewed) {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < RENEWAL,
            "the lease was renewed at {renewed}, between {from} and {to} from now in no case: the clock did not jump, or the lease is lost"
        );
        sleep(Duration::from_millis(500)).await;
    }
}
