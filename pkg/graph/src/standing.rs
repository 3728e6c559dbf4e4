//! Prospect of an upgrade to a bundle, from a resolution.

use olm_resolve::{CandidateVerdict, Rule};
use serde::Serialize;

/// Prospect of an upgrade to a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    /// The bundle is chosen.
    Chosen,
    /// The bundle could be chosen, and another is better.
    Possible,
    /// Another upgrade comes before.
    Later,
    /// The request or a rule between catalogs holds the bundle back.
    Held,
    /// The bundle could not run on the cluster.
    Blocked,
}

/// Prospect of a bundle, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The prospect.
    pub outlook: Outlook,
    /// The reason in a few words; empty for the chosen bundle.
    pub reason: String,
}

impl Outlook {
    /// Returns the prospect in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Chosen => "chosen",
            Self::Possible => "possible",
            Self::Later => "later",
            Self::Held => "held back",
            Self::Blocked => "blocked",
        }
    }
}

impl Standing {
    /// Returns the standing of a bundle; none if no upgrades lead from the installed bundle to it, or if it is installed itself.
    pub(crate) fn of(verdict: &CandidateVerdict) -> Option<Self> {
        let steps = verdict.steps.filter(|steps| *steps > 0)?;
        let outlook = match verdict.ruled_out {
            None => Outlook::Chosen,
            Some(Rule::Lower | Rule::Deprecated) => Outlook::Possible,
            Some(Rule::NotSuccessor) if steps > 1 => Outlook::Later,
            Some(Rule::Dependency | Rule::UnreadableVersion) => Outlook::Blocked,
            Some(
                Rule::NotInChannels
                | Rule::OutOfRange
                | Rule::NotSuccessor
                | Rule::OtherCatalog
                | Rule::Waiting
                | Rule::Outranked
                | Rule::Tied,
            ) => Outlook::Held,
        };
        Some(Self {
            outlook,
            reason: verdict.ruled_out.map_or("", Rule::text).to_owned(),
        })
    }

    /// Returns prospect and reason as a short text.
    pub fn line(&self) -> String {
        if self.reason.is_empty() {
            return self.outlook.text().to_owned();
        }
        format!("{}: {}", self.outlook.text(), self.reason)
    }
}
