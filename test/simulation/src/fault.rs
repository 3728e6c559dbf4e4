//! Faults of single calls, and schedules, which have a text form for reports and `simulate replay`.

use std::collections::BTreeMap;
use std::fmt;

use olm_world::Request;

use crate::net::{CATALOG, IMAGE};

/// Fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The controller's process ends before the call is handled.
    CrashBefore,
    /// The call is handled, and the process ends before the answer arrives.
    CrashAfter,
    /// The call is handled, but no answer arrives; the connection ends after 330 seconds.
    AppliedTimeout,
    /// The call is lost, and no answer arrives; the connection ends after 330 seconds.
    LostTimeout,
    /// The call is handled, and the connection is cut at once.
    AppliedCut,
    /// The call is lost, and the connection is cut at once.
    LostCut,
    /// The answer is 409: the object was changed.
    Conflict,
    /// The answer is 410: the resource version is too old.
    Gone,
    /// The answer is 429, with a `Retry-After` of one second.
    TooManyRequests,
    /// The answer is 500.
    Internal,
    /// The catalog answers with its former content and marks it as such.
    Former,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 11] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::AppliedTimeout,
        Self::LostTimeout,
        Self::AppliedCut,
        Self::LostCut,
        Self::Conflict,
        Self::Gone,
        Self::TooManyRequests,
        Self::Internal,
        Self::Former,
    ];

    /// Returns true if a call of this kind can have the fault, and no other fault has the same effect on it.
    #[must_use]
    pub fn applies(self, call: Kind) -> bool {
        match self {
            Self::CrashBefore | Self::LostTimeout | Self::LostCut => true,
            Self::CrashAfter | Self::AppliedTimeout | Self::AppliedCut | Self::Conflict => {
                call == Kind::Write
            }
            Self::Gone => matches!(call, Kind::List | Kind::Watch),
            Self::TooManyRequests | Self::Internal => !matches!(call, Kind::Catalog | Kind::Image),
            Self::Former => call == Kind::Catalog,
        }
    }

    /// Returns true if the call has no effect and the process learns of it at once. Such faults of one call lead to the same state.
    pub(crate) fn refuses(self) -> bool {
        matches!(
            self,
            Self::LostCut | Self::Conflict | Self::Gone | Self::TooManyRequests | Self::Internal
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::AppliedTimeout => "applied-timeout",
            Self::LostTimeout => "lost-timeout",
            Self::AppliedCut => "applied-cut",
            Self::LostCut => "lost-cut",
            Self::Conflict => "409",
            Self::Gone => "410",
            Self::TooManyRequests => "429",
            Self::Internal => "500",
            Self::Former => "former",
        })
    }
}

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A read of one object, discovery, or a review.
    Read,
    /// A list.
    List,
    /// The start of a watch.
    Watch,
    /// A write that is not a dry run.
    Write,
    /// A question to a catalog.
    Catalog,
    /// A question to a registry.
    Image,
}

impl Kind {
    /// Returns the kind of a call from its method and its query.
    pub(crate) fn of(request: &Request) -> Self {
        match request.method.as_str() {
            CATALOG => Self::Catalog,
            IMAGE => Self::Image,
            "GET" if request.query.contains("watch=") => Self::Watch,
            "GET" if request.query.contains("limit=") || request.query.contains("resourceVersion") => {
                Self::List
            }
            "GET" => Self::Read,
            _ if request.query.contains("dryRun=") || request.path.contains("reviews") => Self::Read,
            _ => Self::Write,
        }
    }
}

/// A deposed leader: a process that stands still in the middle of a call, and goes on while its successor leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deposed {
    /// Number of the call in which the first process stands still. The call is in flight and is handled when the process goes on.
    pub at: usize,
    /// Number of calls of the second process after which the first one goes on. It goes on at the latest when the cluster is
    /// quiet.
    pub after: usize,
    /// Number of calls that the first process makes after it goes on, until it ends.
    pub life: usize,
    /// Number of steps of users that the first process misses. Calls of the second process count for `after` from the last of these
    /// steps. The first process never goes on if the scenario has fewer steps left.
    pub steps: usize,
}

/// Schedule of a run: the seed, the faults, the lag and the deposed leader. Scenario and schedule determine a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schedule {
    /// Seed of all choices. With seed 0, calls are answered in a fixed order, and events are delivered before calls are answered.
    pub seed: u64,
    /// Faults by number of the call.
    pub faults: BTreeMap<usize, Fault>,
    /// Maximum lag of a watch: number of events that it keeps back while calls can be answered. Each watch gets a random lag.
    pub lag: usize,
    /// Deposed leader, if any.
    pub deposed: Option<Deposed>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={} lag={}", self.seed, self.lag)?;
        for (call, fault) in &self.faults {
            write!(f, " {call}={fault}")?;
        }
        if let Some(Deposed {
            at,
            after,
            life,
            steps,
        }) = self.deposed
        {
            write!(f, " deposed={at},{after},{life}")?;
            if steps > 0 {
                write!(f, ",{steps}")?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Schedule {
    type Err = String;

    /// Reads the text that `Display` writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut out = Self::default();
        for word in text.split_whitespace() {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| format!("{word:?} is no NAME=VALUE"))?;
            let number = |text: &str| {
                text.parse()
                    .map_err(|_| format!("{text:?} in {word:?} is no number"))
            };
            match name {
                "seed" => out.seed = value.parse().map_err(|_| format!("{word:?} has no number"))?,
                "lag" => out.lag = number(value)?,
                "deposed" => {
                    let numbers: Vec<usize> = value.split(',').map(number).collect::<Result<_, _>>()?;
                    let (&[at, after, life], steps) = numbers
                        .split_first_chunk()
                        .filter(|(_, steps)| steps.len() < 2)
                        .ok_or_else(|| format!("{word:?} needs three numbers or four"))?;
                    out.deposed = Some(Deposed {
                        at,
                        after,
                        life,
                        steps: steps.first().copied().unwrap_or_default(),
                    });
                }
                call => {
                    let fault = Fault::ALL.into_iter().find(|fault| fault.to_string() == value);
                    let fault = fault.ok_or_else(|| format!("{value:?} is no fault"))?;
                    out.faults.insert(number(call)?, fault);
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_they_are_written() {
        for deposed in ["deposed=4,30,5", "deposed=4,30,5,2"] {
            let text = format!("seed=7 lag=2 3=crash-before 12=409 {deposed}");
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
        for bad in ["x", "seed=a", "1=x", "deposed=1", "deposed=1,2,3,4,5"] {
            assert!(bad.parse::<Schedule>().is_err(), "{bad}");
        }
    }
}
