//! Processor time of a program, from /proc. Unlike the time of the clock, it does not depend on other work of the machine.

use std::fs;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

/// Clock ticks per second in /proc. Linux shows this value to programs on all processors.
const TICKS: u64 = 100;
/// Pause between two checks of a program.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Facts from a line of /proc/PID/stat.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// True if the program has ended and its parent has not waited for it yet.
    is_ended: bool,
    /// Processor time of the program, in user mode and in the kernel.
    own: Duration,
    /// Processor time of the program's children that have ended and that it waited for, and of their children.
    children: Duration,
}

impl Stat {
    /// Reads the line of a program; `None` without /proc.
    fn of(child: &Child) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
        Self::read(&line)
    }

    fn read(line: &str) -> Option<Self> {
        // The second field, the program's name, may contain spaces and parentheses.
        let (_, fields) = line.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let time = |user, system| {
            Some(Duration::from_millis(
                (ticks(user)? + ticks(system)?) * 1000 / TICKS,
            ))
        };
        Some(Self {
            is_ended: *fields.first()? == "Z",
            own: time(11, 12)?,
            children: time(13, 14)?,
        })
    }
}

/// Returns the processor time of a program so far, without its children; `None` without /proc.
pub(crate) fn so_far(child: &Child) -> Option<Duration> {
    Some(Stat::of(child)?.own)
}

/// Waits until a program has ended, and returns the processor time of the program and its children; `None` without /proc.
///
/// The exit status is still available from [`Child::wait`].
pub(crate) fn of_all(child: &Child) -> Option<Duration> {
    loop {
        let stat = Stat::of(child)?;
        if stat.is_ended {
            return Some(stat.own + stat.children);
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn both_times_count_and_a_name_may_be_odd() {
        let line = "7 (a) b) Z 1 7 7 0 -1 4194560 100 0 0 0 250 50 90 10 20 0 1 0 100 1000 10";
        let stat = Stat {
            is_ended: true,
            own: Duration::from_secs(3),
            children: Duration::from_secs(1),
        };
        assert_eq!(Stat::read(line), Some(stat));
        assert_eq!(Stat::read("7 (sh"), None);
    }

    #[test]
    fn the_time_of_a_program_and_its_children_is_known_after_its_end() {
        let loops = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{loops}'; exit 3");
        let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let all = of_all(&child).unwrap();
        assert!(all >= Duration::from_millis(20), "{all:?}");
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}
