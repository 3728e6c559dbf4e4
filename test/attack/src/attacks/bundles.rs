//! Bundles that cost far more than they look, or that name what they must not.

use olm_harness::stub::Image;

use super::{gzip, plain_layer};
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
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: hostile\n";
    let all = files
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .chain([("metadata/annotations.yaml", annotations.as_bytes())]);
    let layer = gzip(&plain_layer(all));
    let labels = [
        (
            "operators.operatorframework.io.bundle.mediatype.v1",
            "registry+v1",
        ),
        ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
        ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
    ];
    Case::bundle(name, Image::labelled(layer, &labels), expect)
}
