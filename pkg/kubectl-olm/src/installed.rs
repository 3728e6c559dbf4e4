//! Installed bundle from the command line: a version, a bundle's name, or both.

use olm_fbc::PackageContent;
use olm_resolve::{CatalogInput, CatalogLookup, Installed};
use olm_text::name::{BundleName, CatalogName};
use olm_version::BundleVersion;

use crate::failure::Failure;

/// Returns the catalogs that have the package, with its content.
pub(crate) fn found(catalogs: &[CatalogInput]) -> impl Iterator<Item = (&CatalogName, &PackageContent)> {
    catalogs.iter().filter_map(|catalog| match &catalog.lookup {
        CatalogLookup::Found(content) => Some((&catalog.name, content.as_ref())),
        _ => None,
    })
}

/// Parses `BUNDLE@VERSION`, or finds the bundle of a name or version in the catalogs.
///
/// # Errors
/// No catalog has the bundle, or several bundles have the version.
pub(crate) fn read(
    text: &str,
    catalogs: &[CatalogInput],
    release_support: bool,
) -> Result<Installed, Failure> {
    let installed = |name: &str, version: BundleVersion| Installed {
        name: name.into(),
        version,
        catalog: None,
    };
    if let Some((name, version)) = text.split_once('@') {
        return if name.is_empty() || version.is_empty() {
            Err(Failure::Usage(format!("{text:?} is not BUNDLE@VERSION")))
        } else {
            Ok(installed(name, version.into()))
        };
    }
    let wanted = matching(text, found(catalogs).map(|(_, content)| content), release_support);
    let mut wanted = wanted.into_iter();
    match (wanted.next(), wanted.next()) {
        (Some((name, Some(version))), None) => Ok(installed(&name, version)),
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

/// Name of a bundle with its version, if that parses.
pub(crate) type NamedBundle = (BundleName, Option<BundleVersion>);

/// Returns the bundles with the name `text`, else those with the version `text`, by name and version.
pub(crate) fn matching<'a>(
    text: &str,
    contents: impl Iterator<Item = &'a PackageContent>,
    release_support: bool,
) -> Vec<NamedBundle> {
    let bundles = contents.flat_map(|content| &content.bundles);
    let mut all: Vec<NamedBundle> = bundles
        .map(|bundle| {
            let version = bundle.version_release(release_support).ok();
            let version = version.map(|version| BundleVersion::spelled(version, release_support));
            (bundle.name.as_str().into(), version)
        })
        .collect();
    let recorded = |(_, version): &NamedBundle| version.as_ref().map(ToString::to_string);
    all.sort_by_cached_key(|bundle| (bundle.0.clone(), recorded(bundle)));
    all.dedup();
    let with = |test: &dyn Fn(&NamedBundle) -> bool| -> Vec<NamedBundle> {
        all.iter().filter(|bundle| test(bundle)).cloned().collect()
    };
    let named = with(&|(name, _)| *name == text);
    if !named.is_empty() {
        return named;
    }
    let wanted = BundleVersion::from(text.strip_prefix('v').unwrap_or(text));
    // With release support, `1.0.0+2` is spelled as a version and a release.
    let is_exact = |version: &BundleVersion| {
        *version == wanted || version.parsed().is_ok_and(|parsed| wanted.parsed() == Ok(parsed))
    };
    let exact = with(&|(_, version)| version.as_ref().is_some_and(is_exact));
    if !exact.is_empty() {
        return exact;
    }
    let Ok(wanted) = wanted.parsed() else {
        return Vec::new();
    };
    with(&|(_, version)| {
        let version = version.as_ref().and_then(|version| version.parsed().ok());
        version.is_some_and(|version| version.version.cmp_precedence(&wanted.version).is_eq())
    })
}
