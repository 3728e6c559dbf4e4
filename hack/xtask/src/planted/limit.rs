//! Limits of a program's time: that of the processors, so that a busy machine changes no result.

use std::fs;
use std::io;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Clock ticks in a second, in /proc; Linux has one value for all processors that it shows to programs.
const TICKS: u64 = 100;
/// Time between two looks at the program.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits for the end of `child`; `None` if it had to be stopped, because it took `limit` of the processors' time, or `wall` passed.
///
/// Systems without /proc have the second limit alone.
pub(super) fn wait(mut child: Child, limit: Duration, wall: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + wall;
    let stat = format!("/proc/{}/stat", child.id());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let taken = fs::read_to_string(&stat).ok().and_then(|text| taken(&text));
        if Instant::now() >= until || taken.is_some_and(|taken| taken >= limit) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(PAUSE);
    }
}

/// Returns the processors' time, of the program and of the system for it, from a line of /proc/PID/stat.
fn taken(stat: &str) -> Option<Duration> {
    // The second field, the name, may have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 1000 / TICKS))
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

    #[test]
    fn both_times_count() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 1 0 100 1000 10";
        assert_eq!(taken(line), Some(Duration::from_secs(3)));
        assert_eq!(taken("7 (sh"), None);
    }
}
