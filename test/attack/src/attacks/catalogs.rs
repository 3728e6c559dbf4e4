//! File-based catalogs that cost far more than they look.

use super::{catalog_image, gzip, plain_layer};
use crate::{Case, Expect, Scale};

pub(super) fn cases(_scale: Scale) -> Vec<Case> {
    let lists = "[0],".repeat(1 << 20);
    vec![of(
        "lists",
        &format!("schema: olm.package\nname: lists\nv: [{lists}]\n"),
        Expect::Refused("more than"),
    )]
}

/// A catalog of one file of YAML.
fn of(name: &str, text: &str, expect: Expect) -> Case {
    let layer = gzip(&plain_layer([("configs/catalog.yaml", text.as_bytes())]));
    Case::catalog(name, catalog_image(&layer), expect)
}
