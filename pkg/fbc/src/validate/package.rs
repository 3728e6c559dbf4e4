//! The facts of every package that outlive its metas, and the rules about packages as a whole.

use super::bundle::{self, BundleFacts};
use super::channel::{self, ChannelFacts};
use super::deprecation::{self, DeprecationsFacts};
use super::finding::Rule;
use super::icon;
use super::raw::RawPackage;
use super::report::{Place, Report};
use crate::Meta;
use crate::model::schema;
use olm_text::dns::is_label;
use olm_version::go_quote;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A name, by its number in [`Names`].
pub(super) type Name = usize;

/// The names of bundles in one package; each is kept once, however many entries mention it.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<String, Name>,
    texts: Vec<String>,
}

impl Names {
    pub(super) fn number(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(super) fn text(&self, number: Name) -> &str {
        self.texts.get(number).map_or("", String::as_str)
    }

    /// Up to twenty names in order, and how many more there are.
    pub(super) fn list(&self, numbers: impl IntoIterator<Item = Name>) -> String {
        let mut texts: Vec<&str> = numbers.into_iter().map(|number| self.text(number)).collect();
        texts.sort_unstable();
        let more = texts.len().saturating_sub(20);
        texts.truncate(20);
        let listed = texts.join(", ");
        if more > 0 {
            format!("{listed} and {more} more")
        } else {
            listed
        }
    }
}

/// Facts about one package that later rules need.
#[derive(Debug, Default)]
pub(super) struct PackageFacts {
    pub(super) names: Names,
    /// Each `olm.package` with its default channel.
    definitions: Vec<(Place, String)>,
    pub(super) channels: Vec<ChannelFacts>,
    pub(super) bundles: Vec<BundleFacts>,
    pub(super) deprecations: Vec<DeprecationsFacts>,
    /// First place that names the package.
    first: Option<Place>,
    /// The first bundle whose image has no digest, and how many there are.
    pub(super) by_tag: Option<(Place, usize)>,
    /// The schemas that are not known here, where each comes first, and how often.
    unknown: BTreeMap<String, (Place, usize)>,
}

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
        // What is malformed is a finding already; that it has no default channel would be a guess.
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
                facts.check(name, first, report);
            }
        }
    }
}

impl PackageFacts {
    fn check(&self, package: &str, first: Place, report: &mut Report) {
        let quoted = go_quote(package);
        if self.definitions.is_empty() {
            let message = format!(
                "package {quoted} has {} channels and {} bundles, but no olm.package",
                self.channels.len(),
                self.bundles.len()
            );
            let hint = "add an olm.package of that name, or correct the package of what names it";
            report.add(first, package, Rule::PackageUnknown, message, hint);
        } else if self.channels.is_empty() {
            let hint = "add an olm.channel";
            let message = format!("package {quoted} has no channel");
            report.add(first, package, Rule::PackageEmpty, message, hint);
        }
        let mut channels: Vec<&str> = self
            .channels
            .iter()
            .map(|channel| channel.name.as_str())
            .collect();
        channels.sort_unstable();
        for (place, default) in &self.definitions {
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
        let bundles: HashSet<Name> = self.bundles.iter().map(|bundle| bundle.name).collect();
        channel::check(self, package, &bundles, report);
        bundle::check(self, package, report);
        deprecation::check(self, package, &bundles, report);
    }
}

/// Reads the blob of `meta`; a finding when it has another shape than its schema says.
pub(super) fn shape<'a, T: Deserialize<'a>>(
    meta: &'a Meta,
    package: &str,
    place: Place,
    report: &mut Report,
) -> Option<T> {
    match serde_json::from_slice(&meta.blob) {
        Ok(raw) => Some(raw),
        Err(error) => {
            let message = format!("{} {} is malformed: {error}", meta.schema, go_quote(&meta.name));
            let hint = "compare the field with the schema's documentation";
            report.add(place, package, Rule::Shape, message, hint);
            None
        }
    }
}
