mod environment;

use olm_fbc::Property;
use serde_json::{Value, json};

use crate::testing::property;

use super::{Environment, Gvk, InstalledBundle, MissingDependency, parse, unmet};

fn constraint(value: Value) -> Property {
    property("olm.constraint", value)
}

fn gvk(group: &str, version: &str, kind: &str) -> Gvk {
    Gvk {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    }
}

fn cluster() -> Environment {
    Environment {
        installed: vec![InstalledBundle {
            package: "blue".into(),
            version: "1.2.0".parse().unwrap(),
            properties: vec![
                json!({"type": "olm.package", "value": {"packageName": "blue", "version": "1.2.0"}}),
                json!({"type": "certified", "value": true}),
                json!({"type": "sizes", "value": [1, 2, 3]}),
            ],
        }],
        served: [gvk("greens.example.com", "v1", "Green")].into(),
    }
}

fn texts(property: Property) -> Vec<String> {
    let requirements = parse(&[property]).unwrap();
    unmet(&requirements, &cluster())
        .into_iter()
        .map(|unmet| unmet.text)
        .collect()
}

const GREEN: &str = "greens.example.com";

#[test]
fn simple_requirements() {
    let green = json!({"group": GREEN, "version": "v1", "kind": "Green"});
    assert_eq!(texts(property("olm.gvk.required", green)), [""; 0]);
    let red = json!({"group": GREEN, "version": "v2", "kind": "Green"});
    assert_eq!(
        texts(property("olm.gvk.required", red)),
        ["it needs the API greens.example.com/v2 Green, which the cluster does not serve"]
    );
    let package = |range: &str| {
        property(
            "olm.package.required",
            json!({"packageName": "blue", "versionRange": range}),
        )
    };
    assert_eq!(texts(package(">=1.0.0 <2.0.0")), [""; 0]);
    assert_eq!(
        texts(package(">=2.0.0")),
        ["it needs package \"blue\" in a version \">=2.0.0\", and version 1.2.0 is installed"]
    );
    let other = property(
        "olm.package.required",
        json!({"packageName": "pink", "versionRange": ">0.0.1"}),
    );
    let requirements = parse(std::slice::from_ref(&other)).unwrap();
    assert_eq!(
        unmet(&requirements, &cluster())[0].missing,
        [MissingDependency::Package {
            name: "pink".into(),
            range: ">0.0.1".to_owned()
        }]
    );
    assert_eq!(
        texts(other),
        ["it needs package \"pink\" in a version \">0.0.1\", and it is not installed"]
    );
    assert!(parse(&[property("olm.package", json!({}))]).unwrap().is_empty());
}

#[test]
fn compound_constraints() {
    let blue = json!({"package": {"name": "blue", "versionRange": ">=1.0.0"}});
    let pink = json!({"failureMessage": "pink is needed", "package": {"packageName": "pink", "versionRange": ">=1.0.0"}});
    let green = json!({"gvk": {"group": GREEN, "version": "v1", "kind": "Green"}});
    let of = |kind: &str, list: &[&Value]| {
        constraint(json!({"failureMessage": "why", kind: {"constraints": list}}))
    };
    assert_eq!(texts(of("all", &[&blue, &green])), [""; 0]);
    assert_eq!(
        texts(of("all", &[&blue, &pink])),
        ["why: pink is needed: it needs package \"pink\" in a version \">=1.0.0\", and it is not installed"]
    );
    assert_eq!(texts(of("any", &[&pink, &blue])), [""; 0]);
    assert_eq!(texts(of("any", &[&pink])).len(), 1);
    assert_eq!(texts(of("not", &[&pink])), [""; 0]);
    assert_eq!(
        texts(of("not", &[&blue, &pink])),
        ["why: it conflicts with package \"blue\" in a version \">=1.0.0\", which is present"]
    );
    let nested = json!({"any": {"constraints": [
        {"all": {"constraints": [blue, pink]}}, {"all": {"constraints": [blue, green]}}]}});
    assert_eq!(texts(constraint(nested)), [""; 0]);
}

#[test]
fn expressions() {
    let cel = |rule: &str| {
        texts(constraint(
            json!({"failureMessage": "require certified", "cel": {"rule": rule}}),
        ))
    };
    for holds in [
        "properties.exists(p, p.type == \"certified\")",
        "properties.exists(p, p.type == 'certified') && !properties.exists(p, p.type == 'x')",
        "properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'blue' && semver_compare(p.value.version, '1.1.9') > 0)",
        "properties.exists(p, p.type == 'olm.package' && (semver_compare(p.value.version, '1.2.0') == 0))",
        "properties.exists(p, p.type == 'sizes' && p.value.exists(s, s == 3))",
        "properties.filter(p, p.type == 'certified').size() == 1",
    ] {
        assert_eq!(cel(holds), [""; 0], "{holds}");
    }
    assert_eq!(
        cel("properties.exists(p, p.type == 'stable')"),
        [
            "require certified: it needs a bundle for which `properties.exists(p, p.type == 'stable')` holds, \
          and no installed bundle satisfies it"
        ]
    );
    for without in [
        "1",
        "nothing.at.all",
        "properties[99].type == 'x'",
        "semver_compare('x', '1.0.0') == 0",
        "'a' < 1",
    ] {
        let text = &cel(without)[0];
        assert!(text.contains("on package blue it fails: "), "{text}");
    }
}

#[test]
fn unreadable_files_are_named() {
    let deep = (0..20).fold(
        json!({"cel": {"rule": "true"}}),
        |inner, _| json!({"all": {"constraints": [inner]}}),
    );
    let wide = json!({"any": {"constraints": vec![json!({"cel": {"rule": "true"}}); 1100]}});
    let cases = [
        (
            constraint(json!({})),
            "property olm.constraint: constraint has no constraint",
        ),
        (
            constraint(json!([])),
            "property olm.constraint: constraint is not an object",
        ),
        (
            constraint(json!({"cel": {"rule": "a"}, "gvk": {}})),
            "property olm.constraint: constraint has several constraints",
        ),
        (
            constraint(json!({"sat": {}})),
            "property olm.constraint: constraint.sat is not a known constraint",
        ),
        (
            constraint(json!({"all": {"constraints": []}})),
            "property olm.constraint: constraint.all has no list of constraints",
        ),
        (
            constraint(json!({"any": {"constraints": [{"gvk": {"group": "a", "kind": "B"}}]}})),
            "property olm.constraint: constraint.any.constraints[0].gvk has no version",
        ),
        (
            constraint(json!({"cel": {"rule": "properties.exists(p"}})),
            "property olm.constraint: constraint.cel: the CEL rule cannot be used",
        ),
        (
            constraint(json!({"cel": {"rule": "(".repeat(9000)}})),
            "property olm.constraint: constraint.cel: the CEL rule cannot be used: it is longer",
        ),
        (
            constraint(json!({"cel": {"rule": "1".to_owned() + &"+1".repeat(3000)}})),
            "property olm.constraint: constraint.cel: the CEL rule cannot be used",
        ),
        (
            constraint(deep),
            "property olm.constraint: there are more than 1024 constraints",
        ),
        (
            constraint(wide),
            "property olm.constraint: there are more than 1024 constraints",
        ),
        (
            constraint(json!({"failureMessage": "x".repeat(70_000), "cel": {"rule": "true"}})),
            "property olm.constraint is larger than 65536 bytes",
        ),
        (
            property(
                "olm.package.required",
                json!({"packageName": "a", "versionRange": "nonsense"}),
            ),
            "property olm.package.required: value: the version range \"nonsense\" is invalid",
        ),
        (
            property("olm.gvk.required", json!("x")),
            "property olm.gvk.required: value is not an object",
        ),
    ];
    for (property, expected) in cases {
        let error = parse(&[property]).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Limits are the last accepted values: 64 KiB, 16 levels below the first, and 1024 with the property itself.
#[test]
fn a_constraint_of_exactly_the_limits_is_read() {
    let leaf = || json!({"cel": {"rule": "true"}});
    let deep = |levels: usize| {
        let value = (0..levels).fold(leaf(), |inner, _| json!({"all": {"constraints": [inner]}}));
        parse(&[constraint(value)]).is_ok()
    };
    assert!(deep(16));
    assert!(!deep(17));
    let wide =
        |count: usize| parse(&[constraint(json!({"any": {"constraints": vec![leaf(); count]}}))]).is_ok();
    assert!(wide(1022));
    assert!(!wide(1023));
    let several = |count: usize| {
        let green = json!({"version": "v1", "kind": "Green"});
        parse(&vec![property("olm.gvk.required", green); count]).is_ok()
    };
    assert!(several(1024));
    assert!(!several(1025));
    let large = |bytes: usize| {
        let with = |message: String| json!({"failureMessage": message, "cel": {"rule": "true"}});
        let empty = with(String::new()).to_string().len();
        parse(&[constraint(with("x".repeat(bytes - empty)))]).is_ok()
    };
    assert!(large(65_536));
    assert!(!large(65_537));
}

#[test]
fn an_empty_text_is_no_text() {
    let error = parse(&[property("olm.gvk.required", json!({"version": "v1", "kind": ""}))]).unwrap_err();
    assert_eq!(error.to_string(), "property olm.gvk.required: value has no kind");
}

#[test]
fn expressions_are_bounded() {
    for rule in [
        "properties.all(a, properties.all(b, properties.all(c, properties.all(d, true))))".to_owned(),
        format!(
            "[{}].all(x, [{}].all(y, properties.all(z, true)))",
            "1,".repeat(900) + "1",
            "1,".repeat(900) + "1"
        ),
        "!".repeat(8000) + "true",
        "-".repeat(8000) + "1 == 1",
        "[".repeat(4000),
        "{'a':".repeat(1500),
        "true?".repeat(1500) + "true" + &":true".repeat(1500),
        "a".to_owned() + &".a".repeat(4000),
        "a".to_owned() + &"(a)".repeat(2500),
        "a".to_owned() + &"[0]".repeat(2500),
    ] {
        let Ok(requirements) = parse(&[constraint(json!({"cel": {"rule": rule}}))]) else {
            continue;
        };
        let mut cluster = cluster();
        let many: Vec<Value> = (0..500).map(|at| json!({"type": "t", "value": at})).collect();
        cluster.installed[0].properties = many;
        // No panic, no stack overflow, and a quick result.
        unmet(&requirements, &cluster);
    }
}
