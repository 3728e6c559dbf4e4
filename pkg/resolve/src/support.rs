//! Support of an installed version, according to the lifecycles of its package. It never changes a choice.

use jiff::ToSpan as _;
use olm_fbc::lifecycle::{Date, Lifecycle, Lifecycles, Phase, Platform};
use olm_version::{MinorVersion, Version, go_quote};
use serde::{Serialize, Serializer};
use std::fmt;

use crate::as_text::as_text;

/// Number of days before the last day of support from which the end is near.
pub const ENDING_SOON_DAYS: i64 = 90;

/// Answer of a catalog about the support of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SupportAnswer {
    /// The catalog has no lifecycles of the package.
    #[default]
    NoData,
    /// The catalog has lifecycles of the package, but no usable one of this version.
    Unknown(UnknownSupport),
    /// The catalog has phases of the version.
    Known(Support),
}

/// Version whose support is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnknownSupport {
    state: Unknown,
    /// The version.
    #[serde(serialize_with = "as_text")]
    pub version: MinorVersion,
    /// The cause, one clause without a full stop.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Unknown {
    Unknown,
}

/// State of the support of a version on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SupportState {
    /// A phase covers the day.
    Supported,
    /// As `Supported`, and support ends within [`ENDING_SOON_DAYS`] days.
    EndingSoon,
    /// No phase covers the day, and one begins later.
    BetweenPhases,
    /// All phases have ended.
    Ended,
}

/// Support of a version on one day. First and last days count in full; days are those of UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Support {
    /// State on the day.
    pub state: SupportState,
    /// The minor version.
    #[serde(serialize_with = "as_text")]
    pub version: MinorVersion,
    /// Phase that covers the day. Of several, the one that ends first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Phase that follows: the one on the day after `phase`, or the next to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Phase>,
    /// Last day of the last phase; `None` if a phase has no end, or ends with 9999-12-31.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_day: Option<Date>,
    /// First day without support; only if support has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_since: Option<Date>,
    /// Platforms that the version supports.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "platforms")]
    pub platforms: Vec<Platform>,
    /// First day after this one on which something of this value may change; `None` if nothing changes any more.
    #[serde(skip)]
    pub next_change: Option<Date>,
}

impl SupportAnswer {
    /// Returns the support of a bundle's `version` on the day `today` of UTC.
    pub fn of(lifecycles: &Lifecycles, version: &Version, today: Date) -> Self {
        Self::of_minor(lifecycles, version.into(), today)
    }

    /// Variant of [`SupportAnswer::of`] for a minor version.
    pub fn of_minor(lifecycles: &Lifecycles, version: MinorVersion, today: Date) -> Self {
        if lifecycles.is_empty() {
            return Self::NoData;
        }
        let reason = match lifecycles.of(version) {
            Some(lifecycle) => match Support::on(version, lifecycle, today) {
                Some(support) => return Self::Known(support),
                None => format!("the catalog has no phases with dates of version {version}"),
            },
            None => match lifecycles.defect(version) {
                Some(defect) => defect.to_string(),
                None => format!("the catalog has lifecycles of the package, but none of version {version}"),
            },
        };
        Self::Unknown(UnknownSupport {
            state: Unknown::Unknown,
            version,
            reason,
        })
    }

    /// Returns the support, if it is known.
    pub fn known(&self) -> Option<&Support> {
        match self {
            Self::Known(support) => Some(support),
            Self::NoData | Self::Unknown(_) => None,
        }
    }

    /// Returns true if the catalog has no lifecycles of the package.
    pub fn is_no_data(&self) -> bool {
        *self == Self::NoData
    }
}

impl Support {
    fn on(version: MinorVersion, lifecycle: &Lifecycle, today: Date) -> Option<Self> {
        let phases = &lifecycle.phases;
        let last_day = Some(phases.iter().map(last).max()?).filter(|day| *day != Date::MAX);
        let near = last_day.and_then(|day| day.checked_sub(ENDING_SOON_DAYS.days()).ok());
        let phase = covering(phases, today);
        let next = match phase {
            Some(phase) => {
                let after = last(phase).tomorrow().ok();
                after.and_then(|after| covering(phases, after).or_else(|| upcoming(phases, after)))
            }
            None => upcoming(phases, today),
        };
        let state = match (phase, next) {
            (Some(_), _) if near.is_some_and(|near| near <= today) => SupportState::EndingSoon,
            (Some(_), _) => SupportState::Supported,
            (None, Some(_)) => SupportState::BetweenPhases,
            (None, None) => SupportState::Ended,
        };
        let ended_since = last_day.and_then(|day| day.tomorrow().ok());
        let starts = phases.iter().filter_map(|phase| phase.start_date);
        let ends = phases.iter().filter_map(|phase| last(phase).tomorrow().ok());
        let next_change = starts.chain(ends).chain(near).filter(|day| *day > today).min();
        Some(Self {
            state,
            version,
            phase: phase.cloned(),
            next: next.cloned(),
            last_day,
            ended_since: ended_since.filter(|_| state == SupportState::Ended),
            platforms: lifecycle.platforms.clone(),
            next_change,
        })
    }
}

/// Returns the last day of a phase; the end of the calendar for a phase without an end.
fn last(phase: &Phase) -> Date {
    phase.end_date.unwrap_or(Date::MAX)
}

/// Returns the phase that covers a day; of several, the one that ends first.
fn covering(phases: &[Phase], day: Date) -> Option<&Phase> {
    let covers = |phase: &&Phase| phase.start_date.is_none_or(|start| start <= day) && day <= last(phase);
    phases.iter().filter(covers).min_by_key(|phase| last(phase))
}

/// Returns the next phase to begin after a day.
fn upcoming(phases: &[Phase], day: Date) -> Option<&Phase> {
    let later = phases
        .iter()
        .filter(|phase| phase.start_date.is_some_and(|start| start > day));
    later.min_by_key(|phase| phase.start_date)
}

/// One or more sentences.
impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version;
        let next = |f: &mut fmt::Formatter<'_>, text: &str| match &self.next {
            Some(next) => write!(f, "{text}{}", go_quote(&next.name)),
            None => Ok(()),
        };
        match (&self.phase, self.ended_since) {
            (Some(phase), _) => {
                write!(
                    f,
                    "Version {version} is in support phase {}",
                    go_quote(&phase.name)
                )?;
                if let Some(end) = phase.end_date.filter(|end| *end != Date::MAX) {
                    write!(f, " until the end of {end}")?;
                    next(f, ", followed by phase ")?;
                }
                f.write_str(".")?;
                match self.last_day {
                    Some(day) => write!(f, " Support ends with {day}."),
                    None => f.write_str(" Support has no end."),
                }
            }
            (None, Some(_)) => match self.last_day {
                Some(day) => write!(f, "Support of version {version} ended with {day}."),
                None => write!(f, "Support of version {version} has ended."),
            },
            (None, None) => {
                write!(f, "No support phase of version {version} covers this day")?;
                next(f, "; the next one is ")?;
                if let Some(start) = self.next.as_ref().and_then(|next| next.start_date) {
                    write!(f, ", from {start}")?;
                }
                f.write_str(".")
            }
        }
    }
}

/// Serializes platforms with the texts of their versions.
fn platforms<S: Serializer>(platforms: &[Platform], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(platforms.iter().map(|platform| PlatformText {
        name: &platform.name,
        versions: platform.versions.iter().map(ToString::to_string).collect(),
    }))
}

#[derive(Serialize)]
struct PlatformText<'a> {
    name: &'a str,
    versions: Vec<String>,
}

#[cfg(test)]
mod tests;
