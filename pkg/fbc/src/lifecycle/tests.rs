use olm_version::MinorVersion;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn minor(text: &str) -> MinorVersion {
    text.parse().unwrap()
}

fn read(objects: &[Value]) -> Lifecycles {
    let mut all = Lifecycles::default();
    for object in objects {
        all.add(object.to_string().as_bytes());
    }
    all
}

fn versions(versions: &Value) -> Value {
    json!({"schema": SCHEMA, "package": "p", "versions": versions})
}

fn full(name: &str, from: &str, to: &str) -> Value {
    json!({"name": name, "phases": [{"name": "Full support", "startDate": from, "endDate": to}]})
}

fn ignored(all: &Lifecycles) -> Vec<String> {
    all.ignored().iter().map(ToString::to_string).collect()
}

#[test]
fn an_object_of_the_producer_is_read() {
    let all = read(&[versions(&json!([{
        "name": "4.18",
        "phases": [
            {"name": "Maintenance support", "startDate": "2025-01-02", "endDate": "2026-01-01"},
            {"name": "Full support", "startDate": "2024-01-01", "endDate": "2025-01-01"},
        ],
        "platformCompatibility": [{"name": "openshift", "versions": ["4.16", "4.17"]}],
        "added": {"later": true},
    }]))]);
    let lifecycle = all.of(minor("4.18")).unwrap();
    let names: Vec<&str> = lifecycle.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(
        names,
        ["Full support", "Maintenance support"],
        "in order of their days"
    );
    assert_eq!(lifecycle.phases[0].end_date.unwrap().to_string(), "2025-01-01");
    assert_eq!(lifecycle.platforms[0].versions, [minor("4.16"), minor("4.17")]);
    assert!(all.ignored().is_empty() && !all.is_empty());
    assert_eq!(all.of(minor("4.17")), None);
    assert_eq!(all.defect(minor("4.17")), None);
    assert!(all.memory() > 200);
}

#[test]
fn what_go_writes_for_empty_lists_is_read() {
    for nothing in [json!(null), json!([])] {
        assert!(read(&[versions(&nothing)]).is_empty());
        let all = read(&[versions(
            &json!([{"name": "1.0", "phases": nothing, "platformCompatibility": nothing}]),
        )]);
        assert_eq!(all.of(minor("1.0")), Some(&Lifecycle::default()));
    }
    assert!(read(&[json!({"schema": SCHEMA})]).is_empty());
}

#[test]
fn phases_may_be_open() {
    let all = read(&[versions(&json!([{"name": "1.0", "phases": [
        {"name": "c", "startDate": "2024-01-01"},
        {"name": "b", "endDate": "2023-12-31", "startDate": null},
        {"name": "a"},
    ]}]))]);
    let phases = &all.of(minor("1.0")).unwrap().phases;
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["b", "c"], "a phase without dates says nothing");
}

#[test]
fn a_defect_leaves_out_its_version_alone() {
    let of = |phases: Value| json!({"name": "1.1", "phases": phases});
    for (entry, said) in [
        (
            json!({"name": "v1.1"}),
            r#"version "v1.1" is ignored: "v1.1" is no version <major>.<minor>"#,
        ),
        (
            json!({"name": 1.1}),
            r#"version "" is ignored: "" is no version <major>.<minor>"#,
        ),
        (
            json!(7),
            r#"version "" is ignored: "" is no version <major>.<minor>"#,
        ),
        (of(json!("x")), r#"version "1.1" is ignored: phases is no list"#),
        (of(json!([3])), r#"version "1.1" is ignored: a phase is no map"#),
        (
            of(json!([{"name": []}])),
            r#"version "1.1" is ignored: a name is no text"#,
        ),
        (
            of(json!([{"endDate": 2024}])),
            r#"version "1.1" is ignored: endDate is no text"#,
        ),
        (
            of(json!([{"name": "Full", "startDate": "2024-02-30"}])),
            r#"version "1.1" is ignored: startDate "2024-02-30" of phase "Full" is no date YYYY-MM-DD"#,
        ),
        (
            of(json!([{"name": "Full", "startDate": "2024-02-02", "endDate": "2024-02-01"}])),
            r#"version "1.1" is ignored: phase "Full" ends before it starts"#,
        ),
        (
            of(json!(vec![json!({}); MAX_PHASES + 1])),
            r#"version "1.1" is ignored: there are more than 32 phases"#,
        ),
    ] {
        let all = read(&[versions(&json!([entry, full("1.0", "2024-01-01", "2024-12-31")]))]);
        assert_eq!(ignored(&all), [format!("the lifecycle of {said}")]);
        assert!(all.of(minor("1.0")).is_some(), "{said}");
        let defect = all.defect(minor("1.1"));
        assert_eq!(defect.is_some(), said.starts_with(r#"version "1.1""#), "{said}");
    }
}

#[test]
fn a_defect_of_the_platforms_keeps_the_dates() {
    for (platforms, said) in [
        (json!({}), "platformCompatibility is no list"),
        (json!([7]), "a platform is no map"),
        (
            json!([{"name": "openshift", "versions": ["4.16.1"]}]),
            r#""4.16.1" is no version <major>.<minor>"#,
        ),
        (
            json!([{"name": "openshift", "versions": [4.16]}]),
            "a platform's version is no text",
        ),
        (
            json!(vec![json!({}); MAX_PLATFORMS + 1]),
            "there are more than 8 platforms",
        ),
        (
            json!([{"versions": vec!["4.1"; MAX_PLATFORM_VERSIONS + 1]}]),
            "there are more than 64 versions of a platform",
        ),
    ] {
        let mut entry = full("1.0", "2024-01-01", "2024-12-31");
        entry["platformCompatibility"] = platforms;
        let all = read(&[versions(&json!([entry]))]);
        assert_eq!(
            ignored(&all),
            [format!(r#"the platforms of version "1.0" are ignored: {said}"#)]
        );
        let lifecycle = all.of(minor("1.0")).unwrap();
        assert!(lifecycle.phases.len() == 1 && lifecycle.platforms.is_empty());
    }
}

#[test]
fn a_defect_of_the_object_is_said_of_every_version() {
    for (blob, said) in [
        (
            "{".to_owned(),
            "it is malformed: EOF while parsing an object at line 1 column 1".to_owned(),
        ),
        ("7".to_owned(), "the object is no map".to_owned()),
        (
            json!({"versions": "4.18"}).to_string(),
            "versions is no list".to_owned(),
        ),
        (
            " ".repeat(MAX_BYTES + 1),
            format!("it has {} bytes, more than {MAX_BYTES}", MAX_BYTES + 1),
        ),
    ] {
        let mut all = Lifecycles::default();
        all.add(blob.as_bytes());
        let said = format!("an object with lifecycles is ignored: {said}");
        assert_eq!(ignored(&all), [said.as_str()]);
        assert_eq!(all.defect(minor("1.0")).unwrap().to_string(), said);
        assert!(!all.is_empty());
    }
}

#[test]
fn entries_that_differ_do_not_count_in_any_order() {
    let (long, short) = (
        full("1.0", "2024-01-01", "2026-01-01"),
        full("1.0", "2024-01-01", "2025-01-01"),
    );
    let other = full("1.1", "2024-01-01", "2026-01-01");
    let objects = [
        versions(&json!([long, other])),
        versions(&json!([short])),
        versions(&json!([long])),
    ];
    let mut backwards = objects.clone();
    backwards.reverse();
    for objects in [objects.as_slice(), &backwards] {
        let all = read(objects);
        assert_eq!(all.of(minor("1.0")), None);
        assert_eq!(
            ignored(&all),
            [
                r#"the lifecycle of version "1.0" is ignored: the catalog has entries for it that contradict each other"#
            ]
        );
        assert_eq!(all.versions().count(), 1);
    }
    let twice = read(&[versions(&json!([long, long])), versions(&json!([long]))]);
    assert!(twice.of(minor("1.0")).is_some() && twice.ignored().is_empty());
}

#[test]
fn everything_is_bounded() {
    let many: Vec<Value> = (0..=MAX_VERSIONS + MAX_IGNORED)
        .map(|at| json!({"name": format!("1.{at}"), "phases": []}))
        .collect();
    let all = read(&[versions(&json!(many))]);
    assert_eq!(all.versions().count(), MAX_VERSIONS);
    assert_eq!(all.ignored().len(), MAX_IGNORED);
    assert_eq!(
        ignored(&all)[0],
        r#"the lifecycle of version "1.256" is ignored: there are more than 256 versions of the package"#
    );
    let long = "é".repeat(MAX_NAME);
    let all = read(&[versions(&json!([
        {"name": "1.0", "phases": [{"name": long, "endDate": "2024-01-01"}]},
        {"name": long, "phases": []},
    ]))]);
    assert!(all.of(minor("1.0")).unwrap().phases[0].name.len() <= MAX_NAME);
    assert!(ignored(&all)[0].len() < 600, "{:?}", ignored(&all));
    let name = "n".repeat(MAX_NAME);
    let phases = vec![json!({"name": name, "endDate": "2024-01-01"}); MAX_PHASES];
    let platforms =
        vec![json!({"name": name, "versions": vec!["4.1"; MAX_PLATFORM_VERSIONS]}); MAX_PLATFORMS];
    let mut full = Lifecycles::default();
    for at in 0..MAX_VERSIONS {
        let entry = json!({"name": format!("1.{at}"), "phases": phases, "platformCompatibility": platforms});
        full.add(versions(&json!([entry])).to_string().as_bytes());
    }
    assert_eq!((full.versions().count(), full.ignored().len()), (MAX_VERSIONS, 0));
    assert!(full.memory() < 5 * 1024 * 1024, "{}", full.memory());
}

/// JSON values near those of the schema.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(|number| json!(number)),
        "[0-9]{1,4}-[0-9]{1,2}-[0-9]{1,2}".prop_map(|text| json!(text)),
        "[0-9]{1,3}[.][0-9]{1,2}".prop_map(|text| json!(text)),
        ".{0,6}".prop_map(|text| json!(text)),
    ];
    let key = prop_oneof![
        Just("versions"),
        Just("name"),
        Just("phases"),
        Just("startDate"),
        Just("endDate"),
        Just("platformCompatibility"),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn checked(all: &Lifecycles) {
    assert!(all.ignored().len() <= MAX_IGNORED && all.memory() < 8 * 1024 * 1024);
    for (_, lifecycle) in all.versions() {
        assert!(lifecycle.phases.len() <= MAX_PHASES && lifecycle.platforms.len() <= MAX_PLATFORMS);
        for phase in &lifecycle.phases {
            assert!(phase.name.len() <= MAX_NAME);
            assert!(phase.start_date.is_some() || phase.end_date.is_some());
            assert!(
                phase
                    .start_date
                    .zip(phase.end_date)
                    .is_none_or(|(start, end)| start <= end)
            );
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let mut all = Lifecycles::default();
        all.add(&bytes);
        checked(&all);
    }

    #[test]
    fn no_object_breaks_the_reader(first in value(), second in value()) {
        let both = read(&[json!({"versions": [first]}), json!({"versions": second})]);
        checked(&both);
        let swapped = read(&[json!({"versions": second}), json!({"versions": [first]})]);
        prop_assert!(both.versions().eq(swapped.versions()), "the order of objects decides nothing");
    }
}
