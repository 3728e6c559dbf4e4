//! Answers of the API server about rights of accounts, kept while a right is missing.
//!
//! No event announces a grant, so a pass looks every ten seconds. A grant by RBAC changes the list of the account's rules, and with it
//! the rights that are not in the list and have to be asked for one by one. As long as these stay the same, the last answers count.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use olm_applier::account::Account;
use olm_bundle::permissions::RequiredRule;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Lifetime of answers: longest delay until a grant by another authorizer than RBAC is noticed.
const LIFETIME: Duration = Duration::from_mins(2);

/// Account and rights of a question. The rights are a hash, since a bundle can require hundreds of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    user: String,
    rights: u64,
}

impl Question {
    /// Returns the question which of `rights`, which are sorted, `account` has.
    pub(crate) fn new(account: &Account, rights: &[RequiredRule]) -> Self {
        let mut hasher = DefaultHasher::new();
        rights.hash(&mut hasher);
        Self {
            user: account.user(),
            rights: hasher.finish(),
        }
    }
}

/// Answers to questions, each with one entry per right: true if the account has it.
#[derive(Default)]
pub(crate) struct Answers(Mutex<HashMap<Question, (Instant, Vec<bool>)>>);

impl Answers {
    /// Returns the answers to `question`, if they are younger than [`LIFETIME`].
    pub(crate) fn get(&self, question: &Question, now: Instant) -> Option<Vec<bool>> {
        let known = self.0.lock();
        let (since, answers) = known.get(question)?;
        (now.duration_since(*since) < LIFETIME).then(|| answers.clone())
    }

    /// Keeps answers with a missing right, and drops answers whose lifetime is over. Nothing waits if the account has every right, so such
    /// answers are not kept.
    pub(crate) fn insert(&self, question: Question, answers: &[bool], now: Instant) {
        let mut known = self.0.lock();
        known.retain(|_, (since, _)| now.duration_since(*since) < LIFETIME);
        if answers.contains(&false) {
            known.insert(question, (now, answers.to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use olm_bundle::permissions::{PolicyRule, RuleScope};

    fn right(verb: &str) -> RequiredRule {
        let rule = PolicyRule {
            verbs: [verb.to_owned()].into(),
            ..PolicyRule::default()
        };
        RequiredRule {
            scope: RuleScope::Cluster,
            rule,
        }
    }

    #[test]
    fn denials_count_for_their_account_their_rights_and_their_lifetime() {
        let account = |name| Account::new("ns", name).unwrap();
        let question = Question::new(&account("a"), &[right("get"), right("list")]);
        let (answers, start) = (Answers::default(), Instant::now());
        answers.insert(question.clone(), &[true, false], start);
        assert_eq!(answers.get(&question, start), Some(vec![true, false]));
        assert_eq!(answers.get(&question, start + LIFETIME), None);
        for other in [
            Question::new(&account("b"), &[right("get"), right("list")]),
            Question::new(&account("a"), &[right("list")]),
        ] {
            assert_eq!(answers.get(&other, start), None);
            answers.insert(other, &[false], start + LIFETIME);
            assert_eq!(answers.0.lock().len(), 1, "old answers are dropped");
            answers.0.lock().clear();
            answers.insert(question.clone(), &[false, false], start);
        }
    }

    #[test]
    fn a_question_with_no_missing_right_is_not_kept() {
        let question = Question::new(&Account::new("ns", "a").unwrap(), &[right("get")]);
        let (answers, now) = (Answers::default(), Instant::now());
        answers.insert(question.clone(), &[true], now);
        assert_eq!(answers.get(&question, now), None);
    }
}
