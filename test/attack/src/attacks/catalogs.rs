//! File-based catalogs with a disproportionate cost, or that are no catalogs.

use super::{catalog_image, gzip, plain_layer};
use crate::{Case, Expect, Scale};

/// Length of a hostile text at each scale: small, and just below the limit of one object.
const SMALL: usize = 64 << 10;
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

/// Returns a YAML meta with a list of this many bytes.
fn yaml(item: &str, length: usize) -> String {
    let items = item.repeat(length / item.len());
    format!("schema: olm.package\nname: a\nv: [{items}]\n")
}

/// Returns a JSON meta with a list of this many bytes and this end.
fn json(item: &str, length: usize, end: &str) -> String {
    let items = item.repeat(length / item.len());
    format!("{{\"schema\":\"olm.package\",\"name\":\"a\",\"v\":[{items}{end}")
}

/// Returns a meta with this many levels.
fn deep(open: &str, close: &str, levels: usize) -> String {
    let (open, close) = (open.repeat(levels), close.repeat(levels));
    format!("{{\"schema\":\"olm.package\",\"name\":\"deep\",\"v\":{open}{close}}}")
}

/// Returns nested aliases.
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
    // A text of one repeated item alone would count as a decompression bomb.
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

/// Returns incompressible bytes.
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
