use olm_bundle::crd_safety::Rules;
use olm_plan::{Change, Plan, Side};
use serde_json::{Value, json};

use super::text;
use crate::cli::Format;
use crate::style::Style;

const HOSTILE: &str = "<script>alert(1)</script>|@everyone `x` [a](b) \u{1b}[31m";

fn config_map(name: &str, fields: usize, value: &str) -> Value {
    let data: serde_json::Map<String, Value> = (0..fields)
        .map(|n| (format!("key{n}"), format!("{value}{n}").into()))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}, "data": data})
}

fn plan(objects: usize, fields: usize, value: &str) -> Plan {
    let side = |value: &str| Side {
        objects: (0..objects)
            .map(|n| config_map(&format!("map{n}"), fields, value))
            .collect(),
        ..Side::default()
    };
    Change {
        namespace: "ns".to_owned(),
        from: Some(side("old")),
        to: side(value),
        refusals: vec![HOSTILE.to_owned()],
        ..Change::default()
    }
    .plan()
}

#[test]
fn a_comment_fits_and_counts_what_it_omits() {
    let long = "<|`@".repeat(40);
    let large = text(&plan(60, 90, &long), Format::Markdown, Style::plain());
    assert!(large.len() <= 65_536, "{}", large.len());
    assert!(large.len() > 50_000, "{}", large.len());
    let rows = large
        .lines()
        .filter(|line| line.contains("<code>ConfigMap ns/map"))
        .count();
    let omitted: usize = large
        .lines()
        .find_map(|line| {
            line.strip_prefix("and ")?
                .strip_suffix(" more rows")?
                .parse()
                .ok()
        })
        .unwrap();
    // At most twenty fields of each object, and a row for the others. The plan itself names 5,000 of 5,400 fields.
    let plan = plan(60, 90, &long);
    let shown = plan.changed.iter().map(|change| change.fields.len().min(20) + 1);
    assert_eq!(rows + omitted, shown.sum::<usize>());
}

#[test]
fn untrusted_text_has_no_effect() {
    for format in [Format::Markdown, Format::Html, Format::Table] {
        let text = text(&plan(1, 1, HOSTILE), format, Style::plain());
        assert!(!text.contains('\u{1b}'), "{text}");
        if format != Format::Table {
            assert!(!text.contains("<script>"), "{text}");
        }
        if format == Format::Markdown {
            assert!(
                !text.contains("@everyone") && !text.contains("`x`") && !text.contains("[a]"),
                "{text}"
            );
            let rows = text.lines().filter(|line| line.contains("alert"));
            for row in rows {
                assert!(row.matches('|').count() <= 5, "{row}");
            }
        }
    }
}

#[test]
fn the_table_names_fields() {
    let text = text(&plan(1, 1, "new"), Format::Table, Style::plain());
    assert!(
        text.contains("  ConfigMap ns/map0   /data/key0   \"old0\"   \"new0\"\n"),
        "{text}"
    );
    assert!(
        text.contains("Objects    0 created, 1 changed (1 field), 0 deleted, 0 unchanged\n"),
        "{text}"
    );
}

#[test]
fn what_recurs_is_named_once() {
    let crd = |described: &str, extra: &Value| {
        let mut field = json!({"type": "string", "description": described});
        for (key, value) in extra.as_object().into_iter().flatten() {
            field[key] = value.clone();
        }
        let fields: serde_json::Map<String, Value> =
            (0..7).map(|n| (format!("f{n}"), field.clone())).collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "kites.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "kites", "kind": "Kite"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}}]}})
    };
    let side = |crd: Value| Side {
        objects: vec![crd],
        ..Side::default()
    };
    let (before, after) = (crd("a", &json!({})), crd("b", &json!({"maxLength": 5})));
    let plan = Change {
        crds: olm_plan::compare_crds(
            std::slice::from_ref(&before),
            std::slice::from_ref(&after),
            Rules::Ours,
        ),
        from: Some(side(before)),
        to: side(after),
        ..Change::default()
    }
    .plan();
    assert_eq!(
        (plan.crds[0].findings.len(), plan.changed[0].fields.len()),
        (7, 14)
    );
    let text = text(&plan, Format::Table, Style::plain());
    assert_eq!(text.matches("maxLength: ").count(), 1, "{text}");
    assert!(
        text.contains("(and in 6 more places)") && text.contains("and 7 descriptions"),
        "{text}"
    );
    assert_eq!(text.matches("/description").count(), 0, "{text}");
    assert!(text.contains("   v1: ^.f6/maxLength   "), "{text}");
}
