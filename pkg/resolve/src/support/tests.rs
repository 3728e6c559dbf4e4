use super::*;
use serde_json::{Value, json};

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn lifecycles(phases: &Value) -> Lifecycles {
    let mut all = Lifecycles::default();
    let platforms = json!([{"name": "openshift", "versions": ["4.16", "4.17"]}]);
    let versions = json!([{"name": "1.0", "phases": phases, "platformCompatibility": platforms}]);
    all.add(json!({"versions": versions}).to_string().as_bytes());
    all
}

fn phase(name: &str, start: &str, end: &str) -> Value {
    let date = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({"name": name, "startDate": date(start), "endDate": date(end)})
}

fn on(lifecycles: &Lifecycles, today: &str) -> SupportAnswer {
    let version = olm_version::parse_version("1.0.3-rc.1").unwrap();
    SupportAnswer::of(lifecycles, &version, day(today))
}

fn described(lifecycles: &Lifecycles, today: &str) -> (SupportState, String, Option<String>) {
    let answer = on(lifecycles, today);
    let support = answer.known().unwrap();
    (
        support.state,
        support.to_string(),
        support.next_change.map(|day| day.to_string()),
    )
}

fn two() -> Lifecycles {
    lifecycles(&json!([
        phase("Full", "2024-01-01", "2024-12-31"),
        phase("Maintenance", "2025-01-01", "2025-12-31")
    ]))
}

#[test]
fn each_day_of_two_phases() {
    use SupportState::{BetweenPhases, Ended, EndingSoon, Supported};
    let full = "Version 1.0 is in support phase \"Full\" until the end of 2024-12-31, followed by phase \"Maintenance\". \
                Support ends with 2025-12-31.";
    let last = "Version 1.0 is in support phase \"Maintenance\" until the end of 2025-12-31. Support ends with 2025-12-31.";
    let ended = "Support of version 1.0 ended with 2025-12-31.";
    let before =
        "No support phase of version 1.0 covers this day; the next one is \"Full\", from 2024-01-01.";
    for (today, state, text, change) in [
        ("2023-12-31", BetweenPhases, before, Some("2024-01-01")),
        ("2024-01-01", Supported, full, Some("2025-01-01")),
        ("2024-12-31", Supported, full, Some("2025-01-01")),
        ("2025-01-01", Supported, last, Some("2025-10-02")),
        ("2025-10-01", Supported, last, Some("2025-10-02")),
        ("2025-10-02", EndingSoon, last, Some("2026-01-01")),
        ("2025-12-31", EndingSoon, last, Some("2026-01-01")),
        ("2026-01-01", Ended, ended, None),
        ("9999-12-31", Ended, ended, None),
    ] {
        let wanted = (state, text.to_owned(), change.map(str::to_owned));
        assert_eq!(described(&two(), today), wanted, "{today}");
    }
    let ended = on(&two(), "2026-02-03");
    assert_eq!(ended.known().unwrap().ended_since, Some(day("2026-01-01")));
}

#[test]
fn nothing_changes_between_two_changes() {
    let gap_and_overlap = lifecycles(&json!([
        phase("a", "2024-01-01", "2024-03-31"),
        phase("b", "2024-02-10", "2024-02-20"),
        phase("c", "2024-06-01", "2024-07-31"),
    ]));
    for lifecycles in [two(), gap_and_overlap] {
        let mut today = day("2023-12-01");
        let mut answer = on(&lifecycles, &today.to_string());
        while let Some(change) = answer.known().unwrap().next_change {
            while today < change {
                assert_eq!(on(&lifecycles, &today.to_string()), answer, "{today}");
                today = today.tomorrow().unwrap();
            }
            answer = on(&lifecycles, &today.to_string());
        }
        assert_eq!(on(&lifecycles, "9999-12-31"), answer);
    }
}

#[test]
fn gaps_and_overlaps_are_described() {
    let overlap = lifecycles(&json!([
        phase("a", "2024-01-01", "2024-12-31"),
        phase("b", "2024-02-10", "2024-02-20"),
        phase("c", "2026-06-01", "2026-07-31"),
    ]));
    let names = |today: &str| {
        let answer = on(&overlap, today);
        let support = answer.known().unwrap();
        let name = |phase: &Option<Phase>| phase.as_ref().map(|phase| phase.name.clone()).unwrap_or_default();
        (name(&support.phase), name(&support.next))
    };
    assert_eq!(names("2024-01-01"), ("a".to_owned(), "c".to_owned()));
    assert_eq!(names("2024-02-10"), ("b".to_owned(), "a".to_owned()));
    assert_eq!(names("2025-02-21"), (String::new(), "c".to_owned()));
    assert_eq!(
        described(&overlap, "2024-12-01").0,
        SupportState::Supported,
        "another phase follows"
    );
}

#[test]
fn open_phases() {
    let open = lifecycles(&json!([
        phase("Full", "", "2024-12-31"),
        phase("Rolling", "2025-01-01", "")
    ]));
    assert_eq!(
        described(&open, "0001-01-01")
            .1
            .as_str()
            .split(" until")
            .next()
            .unwrap(),
        "Version 1.0 is in support phase \"Full\""
    );
    let rolling = "Version 1.0 is in support phase \"Rolling\". Support has no end.".to_owned();
    assert_eq!(
        described(&open, "2025-01-01"),
        (SupportState::Supported, rolling, None)
    );
    let never = lifecycles(&json!([phase("Full", "2024-01-01", "9999-12-31")]));
    assert_eq!(on(&never, "9999-12-30").known().unwrap().last_day, None);
    assert_eq!(described(&never, "9999-12-31").0, SupportState::Supported);
}

#[test]
fn versions_without_phases_are_unknown() {
    let reason = |lifecycles: &Lifecycles| match on(lifecycles, "2024-01-01") {
        SupportAnswer::Unknown(unknown) => unknown.reason,
        answer => panic!("{answer:?}"),
    };
    assert!(on(&Lifecycles::default(), "2024-01-01").is_no_data());
    assert!(!on(&two(), "2024-01-01").is_no_data());
    assert_eq!(
        reason(&lifecycles(&json!([]))),
        "the catalog has no phases with dates of version 1.0"
    );
    let mut other = Lifecycles::default();
    other.add(br#"{"versions": [{"name": "1.1", "phases": []}]}"#);
    assert_eq!(
        reason(&other),
        "the catalog has lifecycles of the package, but none of version 1.0"
    );
    other.add(br#"{"versions": [{"name": "1.0", "phases": 3}]}"#);
    assert_eq!(
        reason(&other),
        "the lifecycle of version \"1.0\" is ignored: phases is no list"
    );
}

#[test]
fn the_data_of_an_answer() {
    let known = serde_json::to_value(on(&two(), "2024-01-01")).unwrap();
    assert_eq!(
        known,
        json!({
            "state": "supported", "version": "1.0", "lastDay": "2025-12-31",
            "phase": {"name": "Full", "startDate": "2024-01-01", "endDate": "2024-12-31"},
            "next": {"name": "Maintenance", "startDate": "2025-01-01", "endDate": "2025-12-31"},
            "platforms": [{"name": "openshift", "versions": ["4.16", "4.17"]}],
        })
    );
    let ended = serde_json::to_value(on(&two(), "2026-01-01")).unwrap();
    assert_eq!(
        (&ended["state"], &ended["endedSince"]),
        (&json!("ended"), &json!("2026-01-01"))
    );
    let unknown = serde_json::to_value(on(&lifecycles(&json!([])), "2026-01-01")).unwrap();
    assert_eq!(unknown["state"], "unknown");
    assert_eq!(serde_json::to_value(SupportAnswer::NoData).unwrap(), Value::Null);
}

#[test]
fn the_next_phase_begins_after_the_day() {
    let next = |start: &str, today: &str| {
        let phase = Phase {
            name: "Full".to_owned(),
            start_date: Some(day(start)),
            end_date: None,
        };
        upcoming(&[phase], day(today)).is_some()
    };
    assert!(next("2024-01-02", "2024-01-01"));
    assert!(!next("2024-01-02", "2024-01-02"));
}
