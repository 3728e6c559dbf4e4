//! Validation of bundles: name, version, properties, images.

use super::facts::{BundleFacts, Name, PackageFacts};
use super::finding::Rule;
use super::image;
use super::property::{self, Properties};
use super::raw::{RawBundle, shape};
use super::report::{Place, Report};
use crate::Meta;
use olm_version::go_quote;
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn add(facts: &mut PackageFacts, meta: &Meta, place: Place, report: &mut Report) {
    let package = meta.package.as_str();
    if meta.name.is_empty() {
        let message = format!("a bundle of package {} has no name", go_quote(package));
        let hint = "set name, such as my-operator.v1.0.0";
        return report.add(place, package, Rule::BundleNameMissing, message, hint);
    }
    let name = facts.names.number(&meta.name);
    let raw: Option<RawBundle<'_>> = shape(meta, package, place, report);
    let version = raw.and_then(|raw| {
        let properties = property::check(&raw, meta, place, report);
        check_images(&raw, &properties, meta, place, report);
        if image::by_tag(raw.image.as_str()) {
            facts.by_tag.get_or_insert((place, 0)).1 += 1;
        }
        properties.version
    });
    facts.bundles.push(BundleFacts { place, name, version });
}

fn check_images(
    raw: &RawBundle<'_>,
    properties: &Properties,
    meta: &Meta,
    place: Place,
    report: &mut Report,
) {
    let of = format!("bundle {}", go_quote(&meta.name));
    let mut add = |rule, message, hint: &str| report.add(place, &meta.package, rule, message, hint);
    let text = raw.image.as_str();
    let hint = "name a registry, a repository and a digest, such as quay.io/org/bundle@sha256:...";
    if text.is_empty() {
        if !properties.has_objects {
            add(Rule::ImageMissing, format!("{of} has no image"), hint);
        }
    } else if let Some(fault) = image::fault(text) {
        let message = format!(
            "the image {} of {of} is no image reference: {fault}",
            go_quote(text)
        );
        add(Rule::ImageInvalid, message, hint);
    }
    for related in &raw.related_images {
        if let Some(fault) = image::fault(related.image.as_str()) {
            let message = format!(
                "the related image {} {} of {of} is no image reference: {fault}",
                go_quote(related.name.as_str()),
                go_quote(related.image.as_str())
            );
            add(
                Rule::RelatedImageInvalid,
                message,
                "set image, or remove it from relatedImages",
            );
        }
    }
}

/// Applies the rules that relate the bundles of a package.
pub(super) fn check(facts: &PackageFacts, package: &str, report: &mut Report) {
    let listed: HashSet<Name> = facts
        .channels
        .iter()
        .flat_map(|channel| channel.entries.iter().copied())
        .collect();
    if let Some((place, count)) = facts.by_tag {
        let message = format!("the images of {count} bundles have no digest");
        let hint = "name images by digest, so that their content cannot change";
        report.add(place, package, Rule::ImageTag, message, hint);
    }
    let mut seen: HashMap<Name, Place> = HashMap::new();
    let mut versions: BTreeMap<String, Vec<&BundleFacts>> = BTreeMap::new();
    for bundle in &facts.bundles {
        let quoted = go_quote(facts.names.text(bundle.name));
        if let Some(first) = seen.get(&bundle.name) {
            let message = format!("bundle {quoted} is already defined at {}", report.name(*first));
            report.add(
                bundle.place,
                package,
                Rule::BundleDuplicate,
                message,
                "keep one olm.bundle of each name",
            );
            continue;
        }
        seen.insert(bundle.name, bundle.place);
        if !listed.contains(&bundle.name) {
            let message = format!("bundle {quoted} is in no channel");
            let hint = "add an entry to a channel, or remove the bundle";
            report.add(bundle.place, package, Rule::BundleNotInChannel, message, hint);
        }
        if let Some(version) = &bundle.version {
            versions.entry(version.legacy_string()).or_default().push(bundle);
        }
    }
    for (version, bundles) in versions.iter().filter(|(_, bundles)| bundles.len() > 1) {
        let names = facts.names.list(bundles.iter().map(|bundle| bundle.name));
        let place = bundles.get(1).map(|bundle| bundle.place);
        if let Some(place) = place {
            let message = format!("the bundles {names} all have version {version}");
            let hint = "give each bundle a version or a release of its own";
            report.add(place, package, Rule::VersionDuplicate, message, hint);
        }
    }
}
