//! Attacks by file-based catalogs: content whose processing costs far more than its size, and invalid content.

use super::{catalog_image, gzip, plain_layer};
use crate::{Case, Expect, Scale};

/// Length of a small hostile text, in bytes.
const SMALL: usize = 64 << 10;
/// Length of a large hostile text, in bytes: just below the limit of one object.
const LARGE: usize = 15 << 20;

pub(super) fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = vec![
        case(
            "lists",
            yaml("[0],", 4 << 20).as_bytes(),
            Expect::Refused("bytes of memory"),
        ),
        case(
            "deep-json",
            deep("[", "]", 200).as_bytes(),
            Expect::Refused("nested deeper than 100 levels"),
        ),
        case(
            "aliases",
            aliases(10, 11).as_bytes(),
            Expect::Refused("excessive aliasing"),
        ),
        case(
            "not-utf8",
            b"schema: olm.package\nname: \xff\xfe\n",
            Expect::Refused("error"),
        ),
        case(
            "endless-json",
            json("\"x\",", SMALL, "").as_bytes(),
            Expect::Refused("error"),
        ),
        case(
            "larger-than-allowed",
            json("\"x\",", 17 << 20, "0]}").as_bytes(),
            Expect::Refused("larger than 16777216 bytes"),
        ),
    ];
    cases.push(case(
        "long-name",
        format!(
            "{{\"schema\":\"olm.package\",\"name\":\"{}\"}}",
            "x".repeat(SMALL)
        )
        .as_bytes(),
        Expect::Refused("the name of a meta is longer than 16384 bytes"),
    ));
    cases.push(ignore_files(32));
    cases.push(links(140));
    if scale == Scale::Full {
        for (size, length) in [("s", SMALL), ("m", 2 << 20), ("l", LARGE)] {
            cases.extend(
                texts(length)
                    .into_iter()
                    .map(|(name, text)| case(&format!("{name}-{size}"), text.as_bytes(), Expect::Any)),
            );
        }
    }
    cases
}

/// Returns hostile texts of about this many bytes.
fn texts(length: usize) -> Vec<(&'static str, String)> {
    let head = "schema: olm.package\nname: a\n";
    let numbered = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        let mut number = 0;
        while text.len() < length {
            text.push_str(&line(number));
            number += 1;
        }
        text
    };
    let keys = numbered(&|number| format!("\"k{number}\":0,"));
    let members = numbered(&|number| format!("k{number}: x\n"));
    let anchors = numbered(&|number| format!("k{number}: &a{number} x\n"));
    let documents = numbered(&|number| format!("schema: olm.package\nname: p{number}\n---\n"));
    let metas = numbered(&|number| format!("{{\"schema\":\"olm.package\",\"name\":\"p{number}\"}}\n"));
    vec![
        ("yaml-lists", yaml("[0],", length)),
        ("yaml-maps", yaml("{a: 0},", length)),
        ("yaml-nulls", yaml("~,", length)),
        ("yaml-strings", yaml("'',", length)),
        ("yaml-keys", format!("{head}{members}")),
        ("yaml-anchors", format!("{head}{anchors}")),
        ("yaml-scalar", format!("{head}v: {}\n", "x".repeat(length))),
        (
            "yaml-quoted",
            format!("{head}v: \"{}\"\n", "\\x41".repeat(length / 4)),
        ),
        (
            "yaml-block",
            format!("{head}v: |\n{}", "  x\n".repeat(length / 4)),
        ),
        ("yaml-comment", format!("{head}# {}\n", "#".repeat(length))),
        ("yaml-blank", format!("{head}{}", "\n".repeat(length))),
        ("yaml-open-flow", format!("{head}v: {}", "[".repeat(length))),
        ("yaml-open-quote", format!("{head}v: \"{}", "x".repeat(length))),
        ("yaml-digits", format!("{head}v: {}\n", "9".repeat(length))),
        ("yaml-separators", "---\n".repeat(length / 4)),
        ("yaml-documents", documents),
        ("json-lists", json("[0],", length, "0]}")),
        ("json-strings", json("\"\",", length, "0]}")),
        ("json-maps", json("{},", length, "0]}")),
        ("json-floats", json("1e20,", length, "0]}")),
        (
            "json-escapes",
            format!(
                "{{\"schema\":\"olm.package\",\"name\":\"a\",\"v\":\"{}\"}}",
                "\\u0001".repeat(length / 6)
            ),
        ),
        (
            "json-objects",
            format!(
                "{{\"schema\":\"olm.filling\",\"name\":\"a\",\"v\":\"{}\"}}\n",
                "x".repeat(length)
            )
            .repeat(4),
        ),
        (
            "json-keys",
            format!("{{\"schema\":\"olm.package\",\"name\":\"a\",\"v\":{{{keys}\"z\":0}}}}"),
        ),
        (
            "json-top-keys",
            format!("{{\"schema\":\"olm.package\",\"name\":\"a\",{keys}\"z\":0}}"),
        ),
        (
            "json-digits",
            format!(
                "{{\"schema\":\"olm.package\",\"name\":\"a\",\"v\":{}}}",
                "9".repeat(length)
            ),
        ),
        ("json-never-ends", json("\"x\",", length, "")),
        ("json-metas", metas),
    ]
}

/// Returns a YAML meta with a list of about this many bytes.
fn yaml(item: &str, length: usize) -> String {
    let items = item.repeat(length / item.len());
    format!("schema: olm.package\nname: a\nv: [{items}]\n")
}

/// Returns a JSON meta with a list of about this many bytes. `end` ends the list and the meta.
fn json(item: &str, length: usize, end: &str) -> String {
    let items = item.repeat(length / item.len());
    format!("{{\"schema\":\"olm.package\",\"name\":\"a\",\"v\":[{items}{end}")
}

/// Returns a JSON meta with a value of this many nested levels.
fn deep(open: &str, close: &str, levels: usize) -> String {
    let (open, close) = (open.repeat(levels), close.repeat(levels));
    format!("{{\"schema\":\"olm.package\",\"name\":\"deep\",\"v\":{open}{close}}}")
}

/// Returns a YAML meta with nested aliases: each level has `width` aliases of the level below.
fn aliases(width: usize, levels: usize) -> String {
    let head = "schema: olm.package\nname: bomb\na0: &a0 [x, x]\n".to_owned();
    (1..=levels).fold(head, |text, level| {
        let aliases = vec![format!("*a{}", level - 1); width].join(", ");
        text + &format!("a{level}: &a{level} [{aliases}]\n")
    })
}

/// Returns a case of a catalog with one file.
fn case(name: &str, text: &[u8], expect: Expect) -> Case {
    let layer = gzip(&plain_layer([("configs/catalog.yaml", text)]));
    // A text of one repeated item compresses so well that it would count as a decompression bomb. Incompressible padding prevents
    // that.
    let noise: Vec<u8> = padding(text.len() / 150);
    let layer = if layer.len() < noise.len() {
        gzip(&plain_layer([
            ("configs/catalog.yaml", text),
            ("padding", &noise),
        ]))
    } else {
        layer
    };
    Case::catalog(name, catalog_image(&layer), expect)
}

/// Returns a case of this many folders with an `.indexignore` of 1 MiB each.
fn ignore_files(count: usize) -> Case {
    let text = "#".repeat(1 << 20);
    let names: Vec<_> = (0..count)
        .map(|number| format!("configs/{number}/.indexignore"))
        .collect();
    let files = names.iter().map(|name| (name.as_str(), text.as_bytes()));
    Case::catalog(
        "ignore-files",
        catalog_image(&gzip(&plain_layer(files))),
        Expect::Refused("more than 1048576 bytes together"),
    )
}

/// Returns a case of a file of 60 MiB without objects, and of this many hard links to it.
fn links(count: usize) -> Case {
    let text = "\n".repeat(60 << 20);
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    // Writing to memory does not fail.
    let _ = archive.append_data(&mut header, "configs/a", text.as_bytes());
    for number in 0..count {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        let _ = archive.append_link(&mut header, format!("configs/{number}"), "configs/a");
    }
    Case::catalog(
        "links",
        catalog_image(&gzip(&archive.into_inner().unwrap_or_default())),
        Expect::Refused("bytes in its files, with each link counted as its file"),
    )
}

/// Returns this many incompressible bytes.
fn padding(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}
