use proptest::prelude::*;
use serde_json::json;

use super::*;

fn condition(status: &str) -> Value {
    json!({"type": "Upgradeable", "status": status, "reason": "Migration", "message": "the data moves"})
}

fn held(object: &Value) -> Option<String> {
    match of_operator_condition(object) {
        Opinion::Holds(hold) => Some(hold.to_string()),
        Opinion::Silent | Opinion::Permits => None,
    }
}

#[test]
fn upgrades_only() {
    let begins = |installed: Option<&str>, rolling_out: Option<&str>, to: &str| {
        let version = |text: &str| BundleVersion::from(text);
        let (installed, rolling_out) = (installed.map(version), rolling_out.map(version));
        begins_upgrade(installed.as_ref(), rolling_out.as_ref(), &version(to))
    };
    assert!(begins(Some("1.0.0"), None, "1.0.1"));
    assert!(begins(Some("1.0.0"), None, "2.0.0"));
    assert!(!begins(None, None, "1.0.0"), "an installation");
    assert!(
        !begins(None, Some("1.0.0"), "1.0.1"),
        "a first installation that is fixed"
    );
    assert!(!begins(Some("1.0.0"), None, "1.0.0"), "the same version");
    assert!(!begins(Some("1.0.1"), None, "1.0.0"), "a downgrade");
    assert!(
        !begins(Some("1.0.0"), Some("1.0.1"), "1.0.1"),
        "the upgrade has begun"
    );
    assert!(
        !begins(Some("1.0.0"), Some("1.0.1"), "1.0.0"),
        "back from an upgrade"
    );
    assert!(begins(Some("1.0.0"), Some("1.0.1"), "1.0.2"), "another upgrade");
}

#[test]
fn the_override_wins() {
    for (overrides, conditions, expected) in [
        ("True", "False", None),
        (
            "False",
            "True",
            Some("Upgradeable=False in spec.overrides (Migration: the data moves)"),
        ),
        (
            "Unknown",
            "True",
            Some("Upgradeable=Unknown in spec.overrides (Migration: the data moves)"),
        ),
    ] {
        let object =
            json!({"spec": {"overrides": [condition(overrides)], "conditions": [condition(conditions)]}});
        assert_eq!(
            held(&object).as_deref(),
            expected,
            "{overrides} over {conditions}"
        );
    }
    let of = |status: &str| of_operator_condition(&json!({"spec": {"overrides": [condition(status)]}}));
    assert!(matches!(of("False"), Opinion::Holds(hold) if hold.is_override()));
    assert_eq!(of("True"), Opinion::Permits);
}

#[test]
fn only_false_holds() {
    let of = |status: &str| held(&json!({"spec": {"conditions": [condition(status)]}}));
    assert_eq!(
        of("False").as_deref(),
        Some("Upgradeable=False in spec.conditions (Migration: the data moves)")
    );
    assert_eq!((of("True"), of("Unknown"), of("no")), (None, None, None));
    for absent in [
        json!({}),
        json!({"spec": {"conditions": [{"type": "Available", "status": "False"}]}}),
        json!({"spec": {"conditions": "x", "overrides": [7]}}),
    ] {
        assert_eq!(held(&absent), None, "{absent}");
    }
}

#[test]
fn the_status_counts_if_the_spec_is_silent() {
    let object = |status: &str, observed: i64| {
        let mut copied = condition(status);
        copied["observedGeneration"] = json!(observed);
        json!({"metadata": {"generation": 2}, "status": {"conditions": [copied]}})
    };
    assert_eq!(held(&object("True", 2)), None);
    assert_eq!(held(&object("Unknown", 2)), None);
    assert!(held(&object("False", 2)).is_some());
    assert_eq!(
        held(&object("True", 1)).as_deref(),
        Some("Upgradeable=True in status.conditions, which is outdated (Migration: the data moves)")
    );
    let mut both = object("False", 2);
    both["spec"] = json!({"conditions": [condition("True")]});
    assert_eq!(held(&both), None, "the spec is newer than its copy");
}

#[test]
fn objects_of_bundles_have_a_status() {
    let object = |status: &str| json!({"status": {"conditions": [condition(status)]}});
    assert!(matches!(of_named_object(&object("False")), Opinion::Holds(_)));
    assert_eq!(of_named_object(&object("True")), Opinion::Silent);
    let elsewhere = json!({"spec": {"conditions": [condition("False")]}});
    assert_eq!(of_named_object(&elsewhere), Opinion::Silent);
}

#[test]
fn named_objects() {
    let parse = |text: &str| NamedObject::parse(text);
    let found = parse("Database.v1beta1.example.com/main").unwrap();
    assert_eq!(
        (
            found.group.as_str(),
            found.version.as_str(),
            found.kind.as_str(),
            found.name.as_str()
        ),
        ("example.com", "v1beta1", "Database", "main")
    );
    assert_eq!(parse("Pod.v1/main").unwrap().group, "");
    for wrong in [
        "",
        "Database/main",
        "Database.v1.example.com",
        "Database.v1.example.com/",
        "Database.v1.example.com/a/b",
        "Database.v1.example.com/..",
        "Database.v1.../main",
        "Data base.v1.example.com/main",
        "../v1.example.com/main",
    ] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}

proptest! {
    /// Foreign texts stay within bounds and on one line.
    #[test]
    fn a_hold_is_one_short_line(reason in ".{0,400}", message in "(?s).{0,2000}") {
        let object = json!({"spec": {"conditions": [
            {"type": "Upgradeable", "status": "False", "reason": reason, "message": message}]}});
        let text = held(&object).unwrap_or_default();
        prop_assert!(!text.chars().any(char::is_control));
        prop_assert!(text.len() < 16 * (REASON_LIMIT + MESSAGE_LIMIT));
    }

    /// Parsing foreign names never panics, and what it accepts can be a path.
    #[test]
    fn names_of_objects_are_segments(text in "[A-Za-z./% -]{0,40}") {
        if let Some(named) = NamedObject::parse(&text) {
            prop_assert!(!named.name.contains(['/', '%']) && named.group != ".." && named.group != ".");
        }
    }
}

#[test]
fn a_permission_of_either_object_counts_else_the_first_hold() {
    use Opinion::{Holds, Permits, Silent};
    for (first, next, both) in [
        (Silent, Silent, Silent),
        (Silent, Holds(2), Holds(2)),
        (Holds(1), Silent, Holds(1)),
        (Holds(1), Holds(2), Holds(1)),
        (Holds(1), Permits, Permits),
        (Permits, Holds(2), Permits),
        (Silent, Permits, Permits),
    ] {
        assert_eq!(first.clone().and(next.clone()), both, "{first:?} {next:?}");
    }
}
