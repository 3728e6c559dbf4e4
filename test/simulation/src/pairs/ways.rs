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
    /// Returns A → B → A: indexes of A and B.
    returned: BTreeSet<(usize, usize)>,
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

    /// Returns the spec to go to next. It is the spec before the last one, if this return is not made yet; else a spec to which no
    /// walk went from the last one, or from which no walk returned to it; else a random spec. `trail` has the specs of the walk so
    /// far.
    ///
    /// So a walk goes A → B → A → B, which are both pairs and both returns of two specs in three steps, and on from there.
    pub(super) fn next(&self, trail: &[usize], rng: &mut Rng) -> usize {
        let any = rng.below(self.specs);
        let Some((at, before)) = trail.split_last() else {
            return any;
        };
        let back = before.last().copied();
        let back = back.filter(|back| self.goes(*at, *back) && !self.returned.contains(&(*back, *at)));
        let mut around = (any..self.specs).chain(0..any);
        back.or_else(|| around.find(|to| self.is_open(*at, *to)))
            .unwrap_or(any)
    }

    /// Returns false if the API server refuses to go from one spec to the other.
    fn goes(&self, from: usize, to: usize) -> bool {
        !self.refused.contains(&(from, to))
    }

    /// Returns true if a pair of specs, or the return over it, is left to walk.
    fn is_open(&self, from: usize, to: usize) -> bool {
        let returns = self.goes(to, from) && !self.returned.contains(&(from, to));
        self.goes(from, to) && (returns || !self.walked.contains(&(from, to)))
    }

    /// Records the last two specs of `trail` as a walked pair, and the last three as a return if they are one.
    pub(super) fn walk(&mut self, trail: &[usize]) {
        if let [.., from, to] = trail {
            self.walked.insert((*from, *to));
        }
        if let [.., first, between, last] = trail
            && first == last
        {
            self.returned.insert((*first, *between));
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

    /// Returns true if every pair is walked or refused, and every return over pairs that are not refused is made.
    pub(super) fn is_complete(&self) -> bool {
        let all = self.specs * self.specs;
        let one_way = self.refused.iter().filter(|(from, to)| self.goes(*to, *from));
        let without_return = self.refused.len() + one_way.count();
        self.walked.len() + self.refused.len() >= all && self.returned.len() + without_return >= all
    }

    pub(super) fn figures(&self) -> Vec<(String, String)> {
        [
            ("valid specs from the schema of the CRD", self.specs.to_string()),
            (
                "pairs A → B",
                format!("{} of {}", self.walked.len(), self.specs * self.specs),
            ),
            (
                "returns A → B → A",
                format!("{} of {}", self.returned.len(), self.specs * self.specs),
            ),
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

    /// Walks until all is walked. No spec can be followed by a spec that is `refused` after it.
    fn walk_all(specs: usize, refused: &[(usize, usize)]) -> (Ways, Vec<usize>) {
        let (mut ways, mut rng) = (Ways::new(specs), Rng::new(1));
        let mut trail = Vec::new();
        while !ways.is_complete() {
            let to = ways.next(&trail, &mut rng);
            if trail.last().is_some_and(|at| refused.contains(&(*at, to))) {
                ways.refuse(&trail, to);
            } else {
                trail.push(to);
                ways.walk(&trail);
            }
            assert!(trail.len() < 100, "{trail:?}");
        }
        (ways, trail)
    }

    #[test]
    fn walks_make_every_pair_and_every_return() {
        let (ways, trail) = walk_all(5, &[]);
        assert_eq!((ways.len(), ways.returned.len()), (25, 25), "{trail:?}");
        // Three steps for the two pairs and two returns of each two specs, two steps for each spec and itself, and random steps where
        // all is walked.
        assert!(trail.len() <= 1 + 3 * 10 + 2 * 5 + 15, "{trail:?}");
    }

    #[test]
    fn a_refused_pair_has_no_return() {
        let (ways, trail) = walk_all(3, &[(0, 1), (1, 1)]);
        assert_eq!((ways.len(), ways.refused.len()), (7, 2), "{trail:?}");
        let without = [(0, 1), (1, 0), (1, 1)];
        assert_eq!(ways.returned.len(), 9 - without.len(), "{trail:?}");
        assert!(
            without.iter().all(|pair| !ways.returned.contains(pair)),
            "{trail:?}"
        );
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
