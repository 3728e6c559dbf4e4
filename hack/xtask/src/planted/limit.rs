//! Time limit of a program by processor time, so that a busy machine does not change results.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::processors::{self, PAUSE};

/// Waits for the end of `child`. Returns `None` if the child was killed, because it took `limit` of processor time or `wall` of
/// time by the clock.
///
/// On systems without /proc, only `wall` limits the child.
pub(super) fn wait(mut child: Child, limit: Duration, wall: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + wall;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until || processors::so_far(&child).is_some_and(|taken| taken >= limit) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    const LONG: Duration = Duration::from_hours(1);

    #[test]
    fn a_program_that_loops_is_stopped_and_one_that_ends_is_not() {
        let looping = wait(shell("while :; do :; done"), Duration::from_millis(20), LONG);
        assert_eq!(looping.unwrap(), None);
        let ended = wait(shell("exit 3"), LONG, LONG).unwrap().unwrap();
        assert_eq!(ended.code(), Some(3));
        let asleep = wait(shell("exec sleep 3600"), LONG, Duration::ZERO).unwrap();
        assert_eq!(asleep, None);
    }
}
