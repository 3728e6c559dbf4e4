//! Layers that are bombs, or that reach out of their image.

use anyhow::Result;
use olm_e2e::content::hostile_layer;

use super::catalog_image;
use crate::{Case, Expect, Scale};

pub(super) fn cases(_scale: Scale) -> Result<Vec<Case>> {
    let known = [
        (
            "gzip-bomb",
            "is a bomb",
            "unpacks to more than 200 times its size",
        ),
        (
            "climbing",
            "climbs out of its folder",
            "is not a name inside the image",
        ),
        ("device", "brings a device", "is a character device"),
    ];
    known
        .into_iter()
        .map(|(name, does, words)| {
            Ok(Case::catalog(
                name,
                catalog_image(&hostile_layer(does)?),
                Expect::Refused(words),
            ))
        })
        .collect()
}
