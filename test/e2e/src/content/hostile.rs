//! Layers of hostile catalog images.

use std::io::{self, Read as _, Write as _};

use anyhow::{Context as _, bail};
use flate2::{Compression, write::GzEncoder};
use tar::{EntryType, Header};

/// Returns the layer, in gzip format, of a hostile catalog in `/configs`. `attack` is the kind of attack.
///
/// # Errors
/// The kind of attack is unknown, or writing to memory failed.
pub fn layer(attack: &str) -> anyhow::Result<Vec<u8>> {
    match attack {
        // The content is a thousand times larger than the layer, and above the size up to which the ratio does not matter.
        "is a bomb" => file(
            "configs/catalog.json",
            80 << 20,
            &mut io::repeat(0).take(80 << 20),
        ),
        "climbs out of its folder" => unchecked_name("configs/../../../escaped", EntryType::Regular),
        "brings a device" => unchecked_name("configs/null", EntryType::Char),
        "nests JSON too deep" => text(&format!(
            "{{\"schema\":\"olm.package\",\"name\":\"deep\",\"v\":{}{}}}",
            "[".repeat(200),
            "]".repeat(200)
        )),
        "expands YAML aliases without end" => {
            let levels = (1..12).map(|level| {
                let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
                format!("a{level}: &a{level} [{aliases}]\n")
            });
            let head = "schema: olm.package\nname: bomb\na0: &a0 [x, x]\n".to_owned();
            text(&levels.fold(head, |bomb, level| bomb + &level))
        }
        other => bail!("no hostile image {other:?}"),
    }
}

fn text(text: &str) -> anyhow::Result<Vec<u8>> {
    file("configs/catalog.yaml", text.len() as u64, &mut text.as_bytes())
}

fn file(name: &str, size: u64, content: &mut dyn io::Read) -> anyhow::Result<Vec<u8>> {
    let mut archive = archive();
    let mut header = header(EntryType::Regular, size);
    archive.append_data(&mut header, name, content)?;
    finish(archive)
}

/// Returns a layer with an empty entry of an unchecked name.
fn unchecked_name(name: &str, kind: EntryType) -> anyhow::Result<Vec<u8>> {
    let mut archive = archive();
    let mut header = header(kind, 0);
    let field = header.as_gnu_mut().context("a GNU header")?;
    for (to, from) in field.name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    header.set_cksum();
    archive.append(&header, io::empty())?;
    finish(archive)
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header
}

type Archive = tar::Builder<GzEncoder<Vec<u8>>>;

fn archive() -> Archive {
    // The best level of compression is needed: at the fastest level, the ratio would be at most 160.
    tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()))
}

fn finish(archive: Archive) -> anyhow::Result<Vec<u8>> {
    let mut gzip = archive.into_inner()?;
    gzip.flush()?;
    Ok(gzip.finish()?)
}
