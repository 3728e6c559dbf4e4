//! Validation of lifecycles: each version must be readable, and its entries must agree.

use super::facts::PackageFacts;
use super::finding::Rule;
use super::report::{Place, Report};
use crate::Meta;
use crate::lifecycle::IgnoredLifecycle;

pub(super) fn add(facts: &mut PackageFacts, meta: &Meta, place: Place, report: &mut Report) {
    let package = meta.package.as_str();
    if package.is_empty() {
        let message = format!("an object of the schema {} names no package", meta.schema);
        let hint = "set package to the name of the olm.package it belongs to";
        return report.add(place, package, Rule::LifecycleInvalid, message, hint);
    }
    let before = facts.lifecycles.ignored().len();
    facts.lifecycles.add(&meta.blob);
    for ignored in facts.lifecycles.ignored().iter().skip(before) {
        let hint = match ignored {
            IgnoredLifecycle::Object(_) | IgnoredLifecycle::Version(..) => {
                "correct it: until then the end of support is unknown"
            }
            IgnoredLifecycle::Platforms(..) => "correct them: until then the platforms are unknown",
        };
        report.add(place, package, Rule::LifecycleInvalid, ignored.to_string(), hint);
    }
}
