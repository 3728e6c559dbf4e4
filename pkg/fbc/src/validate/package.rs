//! Packages: metas by package, and rules about whole packages.

use super::facts::{Name, PackageFacts};
use super::finding::Rule;
use super::raw::{RawPackage, shape};
use super::report::{Place, Report};
use super::{bundle, channel, deprecation, icon, support};
use crate::Meta;
use crate::lifecycle;
use crate::model::schema;
use olm_text::dns::is_label;
use olm_version::go_quote;
use std::collections::{BTreeMap, HashSet};

/// Facts about all packages of a catalog.
#[derive(Debug, Default)]
pub(super) struct Packages {
    packages: BTreeMap<String, PackageFacts>,
}

impl Packages {
    pub(super) fn add(&mut self, meta: &Meta, place: Place, report: &mut Report) {
        let schema = meta.schema.as_str();
        if schema.is_empty() {
            let message = format!("the object {} has no schema", go_quote(&meta.name));
            let hint = "set schema, such as olm.bundle";
            return report.add(place, &meta.package, Rule::SchemaMissing, message, hint);
        }
        if schema == schema::PACKAGE {
            return self.add_package(meta, place, report);
        }
        let known = [schema::CHANNEL, schema::BUNDLE, schema::DEPRECATIONS].contains(&schema);
        if known && meta.package.is_empty() {
            let message = format!("{schema} {} names no package", go_quote(&meta.name));
            let hint = "set package to the name of the olm.package it belongs to";
            return report.add(place, "", Rule::PackageReferenceMissing, message, hint);
        }
        let facts = self.packages.entry(meta.package.clone()).or_default();
        if known {
            facts.first.get_or_insert(place);
        }
        match schema {
            schema::CHANNEL => channel::add(facts, meta, place, report),
            schema::BUNDLE => bundle::add(facts, meta, place, report),
            schema::DEPRECATIONS => deprecation::add(facts, meta, place, report),
            lifecycle::SCHEMA => support::add(facts, meta, place, report),
            _ => facts.unknown.entry(schema.to_owned()).or_insert((place, 0)).1 += 1,
        }
    }

    fn add_package(&mut self, meta: &Meta, place: Place, report: &mut Report) {
        let name = meta.name.as_str();
        if name.is_empty() {
            let hint = "set name to a DNS label, such as my-operator";
            let message = "a package has no name".to_owned();
            return report.add(place, "", Rule::PackageNameMissing, message, hint);
        }
        if !is_label(name) {
            let message = format!("the package name {} is no DNS label", go_quote(name));
            let hint =
                "use at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends";
            report.add(place, name, Rule::PackageNameInvalid, message, hint);
        }
        let raw: Option<RawPackage<'_>> = shape(meta, name, place, report);
        let facts = self.packages.entry(name.to_owned()).or_default();
        facts.first.get_or_insert(place);
        if let Some((first, _)) = facts.definitions.first() {
            let message = format!(
                "package {} is already defined at {}",
                go_quote(name),
                report.name(*first)
            );
            let hint = "keep one olm.package of each name";
            report.add(place, name, Rule::PackageDuplicate, message, hint);
        }
        if let Some(icon) = raw.as_ref().and_then(|raw| raw.icon.as_ref()) {
            icon::check(icon, name, place, report);
        }
        // A malformed channel is a finding already; a missing default channel would be a guess.
        let channel = raw.map(|raw| raw.default_channel.as_str().to_owned());
        if channel.as_deref() == Some("") {
            let message = format!("package {} has no default channel", go_quote(name));
            let hint = "set defaultChannel to one of its channels";
            report.add(place, name, Rule::DefaultChannelMissing, message, hint);
        }
        facts.definitions.push((place, channel.unwrap_or_default()));
    }

    /// Applies the rules that need more than one meta.
    pub(super) fn check(&self, report: &mut Report) {
        for (name, facts) in &self.packages {
            for (schema, (place, count)) in &facts.unknown {
                let message = format!(
                    "{count} of the schema {}, which has no meaning here",
                    go_quote(schema)
                );
                let hint = "nothing to do: catalogd stores and serves them";
                report.add(*place, name, Rule::SchemaUnknown, message, hint);
            }
            if let Some(first) = facts.first {
                check_one(facts, name, first, report);
            }
        }
    }
}

fn check_one(facts: &PackageFacts, package: &str, first: Place, report: &mut Report) {
    let quoted = go_quote(package);
    if facts.definitions.is_empty() {
        let message = format!(
            "package {quoted} has {} channels and {} bundles, but no olm.package",
            facts.channels.len(),
            facts.bundles.len()
        );
        let hint = "add an olm.package of that name, or correct the package of what names it";
        report.add(first, package, Rule::PackageUnknown, message, hint);
    } else if facts.channels.is_empty() {
        let hint = "add an olm.channel";
        let message = format!("package {quoted} has no channel");
        report.add(first, package, Rule::PackageEmpty, message, hint);
    }
    let mut channels: Vec<&str> = facts
        .channels
        .iter()
        .map(|channel| channel.name.as_str())
        .collect();
    channels.sort_unstable();
    for (place, default) in &facts.definitions {
        if !default.is_empty() && !channels.is_empty() && !channels.contains(&default.as_str()) {
            let message = format!(
                "the default channel {} of package {quoted} does not exist; its channels: {}",
                go_quote(default),
                channels.join(", ")
            );
            let hint = "set defaultChannel to one of its channels";
            report.add(*place, package, Rule::DefaultChannelUnknown, message, hint);
        }
    }
    let bundles: HashSet<Name> = facts.bundles.iter().map(|bundle| bundle.name).collect();
    channel::check(facts, package, &bundles, report);
    bundle::check(facts, package, report);
    deprecation::check(facts, package, &bundles, report);
}
