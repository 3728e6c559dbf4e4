//! Bundles that cost far more than they look, or that name what they must not.

use super::bundle_image;
use crate::{Case, Expect, Scale};

pub(super) fn cases(_scale: Scale) -> Vec<Case> {
    vec![of(
        "no-csv",
        &[("manifests/a.yaml", "a: b\n".to_owned())],
        Expect::Refused("error for resolved bundle"),
    )]
}

/// A bundle of these files.
fn of(name: &str, files: &[(&str, String)], expect: Expect) -> Case {
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    Case::bundle(name, bundle_image(&files), expect)
}
