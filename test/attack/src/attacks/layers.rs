//! Layers that are bombs, or that refer to paths outside of their image.

use anyhow::{Context as _, Result};
use olm_e2e::content::hostile_layer;
use tar::{EntryType, Header};

use super::catalog_image;
use crate::{Case, Expect, Scale};

/// Maximum number of entries of an image.
const ENTRIES: usize = 500_000;

pub(super) fn cases(scale: Scale) -> Result<Vec<Case>> {
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
    let mut cases = known
        .into_iter()
        .map(|(name, attack, message)| Ok(refused(name, &hostile_layer(attack)?, message)))
        .collect::<Result<Vec<_>>>()?;
    let zeros = super::plain_layer([("configs/catalog.json", vec![0; 80 << 20].as_slice())]);
    cases.push(refused(
        "zstd-bomb",
        &zstd::encode_all(&mut zeros.as_slice(), 3).context("cannot compress")?,
        "unpacks to more than 200 times its size",
    ));
    cases.push(refused(
        "zstd-window",
        &zstd_window(27)?,
        "error applying layer[0]",
    ));
    cases.push(refused(
        "deep",
        &super::gzip(&entries(
            &format!("configs/{}f", "d/".repeat(70)),
            1,
            EntryType::Regular,
        )?),
        "is nested deeper than 64 directories",
    ));
    cases.push(Case::catalog(
        "link-out",
        catalog_image(&link("configs/catalog.yaml", "../../../../etc/passwd")?),
        Expect::Any,
    ));
    if scale == Scale::Full {
        cases.push(refused(
            "many-files",
            &super::gzip(&entries("configs/", ENTRIES + 1, EntryType::Regular)?),
            "more than",
        ));
        cases.push(refused(
            "many-folders",
            &super::gzip(&entries("configs/", ENTRIES + 1, EntryType::Directory)?),
            "more than",
        ));
    }
    Ok(cases)
}

fn refused(name: &str, layer: &[u8], message: &'static str) -> Case {
    Case::catalog(name, catalog_image(layer), Expect::Refused(message))
}

/// Returns a frame that requires a window of 2 to this power.
fn zstd_window(log: u32) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).context("no encoder")?;
    encoder.window_log(log).context("no such window")?;
    let text = super::plain_layer([(
        "configs/catalog.yaml",
        b"schema: olm.package\nname: a\n".as_slice(),
    )]);
    std::io::Write::write_all(&mut encoder, &text).context("cannot compress")?;
    encoder.finish().context("cannot compress")
}

/// Returns a layer of this many empty entries below a name.
fn entries(below: &str, count: usize, kind: EntryType) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for number in 0..count {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(0);
        archive.append_data(&mut header, format!("{below}{number}"), std::io::empty())?;
    }
    Ok(archive.into_inner()?)
}

/// Returns a layer of a symbolic link.
fn link(name: &str, target: &str) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    archive.append_link(&mut header, name, target)?;
    Ok(archive.into_inner()?)
}
