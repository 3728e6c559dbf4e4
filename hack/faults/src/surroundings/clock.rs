//! A clock that jumps: a preloaded library shifts the time of day that both programs see. Their timers are not affected.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::reach;
use super::seen::Which;
use crate::{Scenario, Stage, World};

/// C source of the library that shifts the time of day. It reads the shift from the file that `CLOCK_SHIFT_FILE` names.
const SOURCE: &str = include_str!("clock.c");
/// Shift to a day ahead, in seconds.
const AHEAD: i64 = 24 * 60 * 60;
/// Shift to an hour ago, in seconds.
const BEHIND: i64 = -60 * 60;
/// Maximum difference between the renew time of the lease and the shifted time, in seconds.
const TOLERANCE: i64 = 60;
/// Name of the lease of operator-controller.
const LEASE: &str = "9c4404e7.operatorframework.io";
/// Time from a change by the user to the jump, so that the controllers are in the middle of their work.
const IN_THE_MIDDLE: Duration = Duration::from_millis(300);
/// Maximum wait for a renewal of the lease.
const RENEWAL: Duration = Duration::from_mins(1);

/// Returns the reason why a clock cannot jump on this machine; `None` if it can.
pub(super) fn missing() -> Option<String> {
    let found = Command::new("cc").arg("--version").output();
    found
        .err()
        .map(|error| format!("cannot run cc, the C compiler: {error}"))
}

/// A shifted time of day: a folder with the compiled library and the file with the shift.
struct Clock {
    folder: TempDir,
}

impl Clock {
    /// Compiles the library, with no shift.
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a folder for the clock")?;
        let clock = Self { folder };
        clock.set(0)?;
        fs::write(clock.path("clock.c"), SOURCE).context("cannot write the library")?;
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .args([clock.path("clock.so"), clock.path("clock.c")])
            .output()
            .context("cannot run cc")?;
        ensure!(
            output.status.success(),
            "cc fails: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(clock)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets the shift from the true time, in seconds.
    fn set(&self, seconds: i64) -> Result<()> {
        // The rename keeps readers from seeing an empty file.
        fs::write(self.path("next"), seconds.to_string())
            .and_then(|()| fs::rename(self.path("next"), self.path("shift")))
            .context("cannot set the clock")
    }

    /// Returns the beginning of a command line that runs a program with this clock.
    fn wrapper(&self) -> Vec<String> {
        vec![
            "env".to_owned(),
            format!("LD_PRELOAD={}", self.path("clock.so").display()),
            format!("CLOCK_SHIFT_FILE={}", self.path("shift").display()),
        ]
    }
}

/// Lets the clock of both programs jump to a day ahead during an installation, and to an hour ago during an upgrade. In the end,
/// both programs restart with the clock an hour ago, so that their lease and their certificates are from the future.
pub(super) async fn jump(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    let clock = Clock::new()?;
    for which in [Which::Catalogd, Which::Controller] {
        let program = which.of(world);
        program.set_wrapper(clock.wrapper());
        program.set_more_args(vec!["--leader-elect=true".to_owned()]);
    }
    let result = jump_twice(world, scenario, &clock).await;
    for which in [Which::Catalogd, Which::Controller] {
        let program = which.of(world);
        program.set_wrapper(Vec::new());
        program.set_more_args(Vec::new());
    }
    let restarted = restart(world).await;
    let seen = result?;
    restarted.map(|()| seen)
}

/// Carries out the jumps. The caller removes the clock from the programs afterwards.
async fn jump_twice(world: &mut World, scenario: &mut Scenario, clock: &Clock) -> Result<String> {
    restart(world).await?;
    scenario.perform(&world.client(), Stage::Install).await?;
    sleep(IN_THE_MIDDLE).await;
    clock.set(AHEAD)?;
    reach(world, scenario)
        .await
        .context("after a jump of a day ahead")?;
    renewed(world, AHEAD).await?;
    scenario.perform(&world.client(), Stage::Upgrade).await?;
    sleep(IN_THE_MIDDLE).await;
    clock.set(BEHIND)?;
    reach(world, scenario)
        .await
        .context("after a jump to an hour ago")?;
    renewed(world, BEHIND).await?;
    scenario.perform(&world.client(), Stage::RollBack).await?;
    restart(world).await?;
    reach(world, scenario)
        .await
        .context("after a restart an hour ago")?;
    Ok("nothing; the lease was renewed a day ahead, and an hour ago".to_owned())
}

/// Kills and starts both programs.
async fn restart(world: &mut World) -> Result<()> {
    for which in [Which::Catalogd, Which::Controller] {
        let program = which.of(world);
        program.kill()?;
        program.start().await?;
    }
    Ok(())
}

/// Waits until operator-controller has renewed its lease at a time that is shifted by about `shift` seconds, which shows that its
/// clock has jumped.
async fn renewed(world: &World, shift: i64) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(world.client(), SYSTEM_NAMESPACE);
    let begin = Instant::now();
    loop {
        let spec = leases.get(LEASE).await?.spec.unwrap_or_default();
        let renewed = spec.renew_time.context("the lease was never renewed")?.0;
        let distance = renewed.as_second() - Timestamp::now().as_second();
        if (distance - shift).abs() <= TOLERANCE {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < RENEWAL,
            "the last renewal of the lease is {distance} s from now, not {shift} s: the clock did not jump, or the lease is lost"
        );
        sleep(Duration::from_millis(500)).await;
    }
}
