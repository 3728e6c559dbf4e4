//! Attacks by image layers: decompression bombs, too many or too deep entries, and entries outside of the image.

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
    cases.push(refused(
        "long-paths",
        &super::gzip(&long_paths()?),
        "the paths of the image have more than 64000000 bytes together",
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
        cases.push(refused(
            "implied-folders",
            &super::gzip(&implied_folders(ENTRIES)?),
            "the image unpacks to more than 50000 files and directories",
        ));
    }
    Ok(cases)
}

fn refused(name: &str, layer: &[u8], message: &'static str) -> Case {
    Case::catalog(name, catalog_image(layer), Expect::Refused(message))
}

/// Returns a zstd frame that requires a window of 2^`log` bytes.
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

/// Returns a layer with this many empty entries, whose names start with `below`.
fn entries(below: &str, count: usize, kind: EntryType) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for number in 0..count {
        empty(&mut archive, format!("{below}{number}"), kind)?;
    }
    Ok(archive.into_inner()?)
}

fn empty(archive: &mut tar::Builder<Vec<u8>>, name: String, kind: EntryType) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_size(0);
    Ok(archive.append_data(&mut header, name, std::io::empty())?)
}

/// Returns a layer of files that imply more than this many folders, 61 for each file.
fn implied_folders(folders: usize) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let below = "d/".repeat(60);
    for number in 0..=folders / 61 {
        empty(
            &mut archive,
            format!("configs/{number}/{below}f"),
            EntryType::Regular,
        )?;
    }
    Ok(archive.into_inner()?)
}

/// Returns a layer of 20,000 files with short names, behind a link to a folder with a path of 3.5 KB.
fn long_paths() -> Result<Vec<u8>> {
    let deep = vec!["d".repeat(250); 14].join("/");
    let mut archive = tar::Builder::new(Vec::new());
    empty(&mut archive, format!("configs/{deep}/f"), EntryType::Regular)?;
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    archive.append_link(&mut header, "configs/l", &deep)?;
    for number in 0..20_000 {
        empty(&mut archive, format!("configs/l/{number}"), EntryType::Regular)?;
    }
    Ok(archive.into_inner()?)
}

/// Returns a layer with a symbolic link.
fn link(name: &str, target: &str) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    archive.append_link(&mut header, name, target)?;
    Ok(archive.into_inner()?)
}
