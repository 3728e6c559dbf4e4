//! Record of the walks: the pairs of specs that were walked, and the states and violations that the walks found.

use std::collections::{BTreeMap, BTreeSet};

use olm_proof::Violation;
use serde_json::Value;

use crate::rng::Rng;

/// Maximum number of violations in a report.
const MAX_VIOLATIONS: usize = 40;

/// Record of the walks over all pairs of specs. A spec is named by its index in the list of specs.
#[derive(Default)]
pub(super) struct Ways {
    /// Number of specs.
    specs: usize,
    /// Walked pairs: indexes of the spec before and the spec after a transition.
    walked: BTreeSet<(usize, usize)>,
    /// Number of walks A → B → A.
    returns: usize,
    /// Pairs of which the API server refuses the second spec.
    refused: BTreeSet<(usize, usize)>,
    /// Hash of the extension's objects, by spec and bundle.
    states: BTreeMap<(usize, String), u64>,
    pub(super) violations: Vec<Violation>,
}

impl Ways {
    pub(super) fn new(specs: usize) -> Self {
        Self {
            specs,
            ..Self::default()
        }
    }

    /// Returns the spec to go to next. It is the spec before the last one, if this way back is not walked yet; else a spec to
    /// which no walk went from the last one; else a random spec. `trail` has the specs of the walk so far.
    pub(super) fn next(&self, trail: &[usize], rng: &mut Rng) -> usize {
        let any = rng.below(self.specs);
        let Some((at, before)) = trail.split_last() else {
            return any;
        };
        let open = |to: usize| !self.walked.contains(&(*at, to)) && !self.refused.contains(&(*at, to));
        let back = before.last().copied().filter(|back| open(*back));
        let around = (any..self.specs).chain(0..any);
        back.or_else(|| around.into_iter().find(|to| open(*to)))
            .unwrap_or(any)
    }

    /// Records the pair of the last two specs of `trail` as walked.
    pub(super) fn walk(&mut self, trail: &[usize]) {
        if let [.., from, to] = trail {
            self.walked.insert((*from, *to));
        }
        if let [.., first, _, last] = trail {
            self.returns += usize::from(first == last);
        }
    }

    /// Records that the API server refuses to go from the last spec of `trail` to `to`.
    pub(super) fn refuse(&mut self, trail: &[usize], to: usize) {
        self.refused.extend(trail.last().map(|from| (*from, to)));
    }

    /// Compares the state that spec `at` led to with the state of its earlier visits with the same bundle. `place` says where a
    /// violation happened.
    pub(super) fn compare(&mut self, at: usize, spec: &Value, bundle: String, state: u64, place: String) {
        if *self.states.entry((at, bundle)).or_insert(state) != state {
            let text = format!(
                "spec {at} led to another state than at an earlier visit: {}",
                spec["spec"]
            );
            self.violate("equal-states", place, text);
        }
    }

    /// Records a violation for each difference between the cluster and the goal of the spec.
    pub(super) fn differ(&mut self, problems: &[String], spec: &Value, place: &str) {
        for problem in problems {
            let text = format!("{problem}; spec {}", spec["spec"]);
            self.violate("convergence", place.to_owned(), text);
        }
    }

    /// Records a violation, up to [`MAX_VIOLATIONS`].
    pub(super) fn violate(&mut self, invariant: &str, seed: String, text: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation {
                invariant: invariant.to_owned(),
                seed,
                text,
            });
        }
    }

    /// Returns the number of walked pairs.
    pub(super) fn len(&self) -> usize {
        self.walked.len()
    }

    /// Returns true if every pair is walked or refused.
    pub(super) fn is_complete(&self) -> bool {
        self.walked.len() + self.refused.len() >= self.specs * self.specs
    }

    pub(super) fn figures(&self) -> Vec<(String, String)> {
        [
            ("valid specs from the schema of the CRD", self.specs.to_string()),
            (
                "pairs A → B",
                format!("{} of {}", self.walked.len(), self.specs * self.specs),
            ),
            ("returns A → B → A", self.returns.to_string()),
            (
                "pairs that the API server refuses",
                self.refused.len().to_string(),
            ),
            ("distinct final states", self.states.len().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// Returns a hash of objects that does not depend on their order.
pub(super) fn state(objects: impl Iterator<Item = (String, Value)>) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    objects
        .map(|(key, object)| {
            let mut hasher = DefaultHasher::new();
            (key, object.to_string()).hash(&mut hasher);
            hasher.finish()
        })
        .fold(0, |all, one| all ^ one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_go_back_once_and_then_where_nobody_was() {
        let (mut ways, mut rng) = (Ways::new(4), Rng::new(1));
        let mut trail = Vec::new();
        // A walk may reach a spec from which all ways are walked; from there it goes to a random spec.
        while !ways.is_complete() {
            trail.push(ways.next(&trail, &mut rng));
            ways.walk(&trail);
            assert!(trail.len() < 40, "{trail:?}");
        }
        assert_eq!((ways.len(), ways.returns > 3), (16, true), "{trail:?}");
    }

    #[test]
    fn another_state_of_the_same_spec_is_seen() {
        let mut ways = Ways::new(2);
        let mut found = |bundle: &str, state: u64| {
            ways.compare(0, &Value::Null, bundle.to_owned(), state, "here".to_owned());
            ways.violations.len()
        };
        assert_eq!(
            [found("a", 7), found("b", 8), found("a", 7), found("a", 8)],
            [0, 0, 0, 1]
        );
    }
}
