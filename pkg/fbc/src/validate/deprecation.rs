//! Validation of deprecations: each must name one existing object, once.

use super::facts::{DeprecationsFacts, Name, PackageFacts};
use super::finding::Rule;
use super::raw::{RawDeprecations, shape};
use super::report::{Place, Report};
use crate::Meta;
use crate::model::schema;
use olm_version::go_quote;
use std::collections::HashSet;

pub(super) fn add(facts: &mut PackageFacts, meta: &Meta, place: Place, report: &mut Report) {
    let package = meta.package.as_str();
    let raw: Option<RawDeprecations<'_>> = shape(meta, package, place, report);
    let mut seen: HashSet<(String, String)> = HashSet::new();
    let mut references = Vec::new();
    let mut add = |rule, message: String, hint: &str| report.add(place, package, rule, message, hint);
    for entry in raw.iter().flat_map(|raw| &raw.entries) {
        let (schema, name) = entry.reference.as_ref().map_or(("", ""), |reference| {
            (reference.schema.as_str(), reference.name.as_str())
        });
        let of = format!("the deprecation of {} {}", go_quote(schema), go_quote(name));
        if entry.message.as_str().trim().is_empty() {
            let message = format!("{of} has no message");
            add(
                Rule::DeprecationMessageMissing,
                message,
                "say in message what to use instead",
            );
        }
        if !seen.insert((schema.to_owned(), name.to_owned())) {
            let message = format!("{of} is listed twice");
            add(
                Rule::DeprecationDuplicate,
                message,
                "keep one entry for each reference",
            );
            continue;
        }
        match schema {
            schema::PACKAGE if !name.is_empty() => {
                let message = format!("{of} names the package");
                let hint = "leave out the reference's name: the package is that of the olm.deprecations";
                add(Rule::DeprecationReference, message, hint);
            }
            schema::PACKAGE => {}
            schema::CHANNEL | schema::BUNDLE if name.is_empty() => {
                let message = format!("{of} has no name");
                add(Rule::DeprecationReference, message, "set the reference's name");
            }
            schema::CHANNEL | schema::BUNDLE => references.push((schema.to_owned(), name.to_owned())),
            _ => {
                let message = format!("{of} is of a schema that cannot be deprecated");
                let hint = "deprecate an olm.package, an olm.channel or an olm.bundle";
                add(Rule::DeprecationSchema, message, hint);
            }
        }
    }
    facts.deprecations.push(DeprecationsFacts { place, references });
}

pub(super) fn check(facts: &PackageFacts, package: &str, bundles: &HashSet<Name>, report: &mut Report) {
    let bundles: HashSet<&str> = bundles.iter().map(|name| facts.names.text(*name)).collect();
    let channels: HashSet<&str> = facts
        .channels
        .iter()
        .map(|channel| channel.name.as_str())
        .collect();
    for (at, deprecations) in facts.deprecations.iter().enumerate() {
        let place = deprecations.place;
        if at > 0 {
            let message = format!("package {} has more than one olm.deprecations", go_quote(package));
            let hint = "join the entries into one olm.deprecations: only one is looked at";
            report.add(place, package, Rule::DeprecationsDuplicate, message, hint);
        }
        for (schema, name) in &deprecations.references {
            let known = if schema == schema::BUNDLE {
                &bundles
            } else {
                &channels
            };
            if !known.contains(name.as_str()) {
                let message = format!("the deprecated {schema} {} does not exist", go_quote(name));
                let hint = "correct the reference's name, or remove the entry";
                report.add(place, package, Rule::DeprecationUnknown, message, hint);
            }
        }
    }
}
