//! Joint moves: versions of several extensions that need each other's.

use std::collections::BTreeSet;

use olm_fbc::Property;

use crate::constraint::{self, Environment, Gvk, InstalledBundle, Requirement};

/// Maximum number of combinations that a search looks at.
pub const MAX_COMBINATIONS: usize = 20_000;

/// A bundle with its requirements.
#[derive(Clone, Debug)]
pub struct Party {
    /// The bundle, as requirements of others see it.
    pub bundle: InstalledBundle,
    /// APIs that the bundle provides.
    pub provided: BTreeSet<Gvk>,
    /// Requirements of the bundle.
    pub requirements: Vec<Requirement>,
}

impl Party {
    /// Returns the party of a bundle with these properties. A requirement that cannot be read is none: other checks refuse its bundle.
    #[must_use]
    pub fn new(bundle: InstalledBundle, properties: &[Property]) -> Self {
        Self {
            bundle,
            provided: constraint::provided_apis(properties).collect(),
            requirements: constraint::parse(properties).unwrap_or_default(),
        }
    }
}

/// The search was too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the extensions have more than {MAX_COMBINATIONS} combinations of versions; limit them by spec.source.catalog.version"
)]
pub struct TooMany;

/// Returns the highest combination of candidates, as one position for each member, in which every requirement holds: those of the
/// candidates, and those of `others`. Candidates are sorted, highest first. The member that comes first has precedence. None if there is
/// no such combination.
///
/// `served` are the APIs that the cluster serves without the members.
///
/// # Errors
/// [`TooMany`] if the combinations up to the result exceed [`MAX_COMBINATIONS`].
pub fn joint_move(
    members: &[Vec<Party>],
    others: &[Party],
    served: &BTreeSet<Gvk>,
) -> Result<Option<Vec<usize>>, TooMany> {
    let mut at = vec![0; members.len()];
    if members.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    for _ in 0..MAX_COMBINATIONS {
        if holds(members, &at, others, served) {
            return Ok(Some(at));
        }
        if !advance(&mut at, members) {
            return Ok(None);
        }
    }
    Err(TooMany)
}

/// Moves to the next lower combination, the last member first. Returns false after the lowest one.
fn advance(at: &mut [usize], members: &[Vec<Party>]) -> bool {
    for (position, candidates) in at.iter_mut().zip(members).rev() {
        *position += 1;
        if *position < candidates.len() {
            return true;
        }
        *position = 0;
    }
    false
}

/// Returns true if every requirement of a combination holds.
fn holds(members: &[Vec<Party>], at: &[usize], others: &[Party], served: &BTreeSet<Gvk>) -> bool {
    let chosen: Vec<&Party> = members
        .iter()
        .zip(at)
        .filter_map(|(candidates, position)| candidates.get(*position))
        .collect();
    let all: Vec<&Party> = chosen.iter().copied().chain(others).collect();
    let mut apis = served.clone();
    apis.extend(all.iter().flat_map(|party| party.provided.iter().cloned()));
    (0..all.len()).all(|own| {
        let Some(party) = all.get(own).filter(|party| !party.requirements.is_empty()) else {
            return true;
        };
        let rest = all.iter().enumerate().filter(|(place, _)| *place != own);
        let environment = Environment {
            installed: rest.map(|(_, party)| party.bundle.clone()).collect(),
            served: apis.clone(),
        };
        constraint::unmet(&party.requirements, &environment).is_empty()
    })
}
