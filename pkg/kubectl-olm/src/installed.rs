//! Installed bundle from the command line: a version, a bundle's name, or both.

use std::collections::BTreeSet;

use olm_fbc::PackageContent;
use olm_resolve::{CatalogInput, CatalogLookup, Installed};
use olm_version::VersionRelease;

use crate::failure::Failure;

/// Returns the catalogs that have the package, with its content.
pub(crate) fn found(catalogs: &[CatalogInput]) -> impl Iterator<Item = (&str, &PackageContent)> {
    catalogs.iter().filter_map(|catalog| match &catalog.lookup {
        CatalogLookup::Found(content) => Some((catalog.name.as_str(), content.as_ref())),
        _ => None,
    })
}

/// Parses `BUNDLE@VERSION`, or finds the bundle of a name or version in the catalogs.
///
/// # Errors
/// No catalog has the bundle, or several bundles have the version.
pub(crate) fn read(text: &str, catalogs: &[CatalogInput]) -> Result<Installed, Failure> {
    let installed = |name: &str, version: &str| Installed {
        name: name.to_owned(),
        version: version.to_owned(),
        release: None,
        catalog: None,
    };
    if let Some((name, version)) = text.split_once('@') {
        return if name.is_empty() || version.is_empty() {
            Err(Failure::Usage(format!("{text:?} is not BUNDLE@VERSION")))
        } else {
            Ok(installed(name, version))
        };
    }
    let wanted = matching(text, found(catalogs).map(|(_, content)| content));
    let mut wanted = wanted.into_iter();
    match (wanted.next(), wanted.next()) {
        (Some((name, Some(version))), None) => Ok(installed(&name, &version)),
        (Some((name, None)), None) => Err(Failure::Usage(format!(
            "bundle {name:?} has no valid version; write {name}@VERSION"
        ))),
        (Some((first, _)), Some((second, _))) => Err(Failure::Usage(format!(
            "several bundles match {text:?}: name one, such as {first:?} or {second:?}"
        ))),
        (None, _) => Err(Failure::Usage(format!(
            "no catalog has {text:?} of this package; write BUNDLE@VERSION"
        ))),
    }
}

/// Returns the bundles with the name `text`, else those with the version `text`, each with its version.
pub(crate) fn matching<'a>(
    text: &str,
    contents: impl Iterator<Item = &'a PackageContent>,
) -> BTreeSet<(String, Option<String>)> {
    type Named = (String, Option<String>);
    let all: BTreeSet<Named> = contents
        .flat_map(|content| &content.bundles)
        .map(|bundle| {
            let version = bundle.version_release(false).ok();
            (bundle.name.clone(), version.map(|version| version.to_string()))
        })
        .collect();
    let with = |test: &dyn Fn(&Named) -> bool| -> BTreeSet<Named> {
        all.iter().filter(|bundle| test(bundle)).cloned().collect()
    };
    let named = with(&|(name, _)| name == text);
    if !named.is_empty() {
        return named;
    }
    let bare = text.strip_prefix('v').unwrap_or(text);
    let exact = with(&|(_, version)| version.as_deref() == Some(bare));
    if !exact.is_empty() {
        return exact;
    }
    let Ok(wanted) = VersionRelease::parse_legacy(bare) else {
        return BTreeSet::new();
    };
    with(&|(_, version)| {
        version
            .as_deref()
            .and_then(|version| VersionRelease::parse_legacy(version).ok())
            .is_some_and(|version| version.version.cmp_precedence(&wanted.version).is_eq())
    })
}
