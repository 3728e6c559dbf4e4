use super::*;

fn selector(expressions: &[(&str, &str, &[&str])]) -> Result<Selector, SelectorError> {
    let owned: Vec<(&str, &str, Vec<String>)> = expressions
        .iter()
        .map(|(key, operator, values)| {
            (
                *key,
                *operator,
                values.iter().map(|value| (*value).to_owned()).collect(),
            )
        })
        .collect();
    Selector::new(
        [],
        owned
            .iter()
            .map(|(key, operator, values)| (*key, *operator, values.as_slice())),
    )
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    owned.collect()
}

#[test]
fn each_operator_compares_one_label() {
    let (prod, test, none) = (
        labels(&[("env", "prod")]),
        labels(&[("env", "test")]),
        labels(&[]),
    );
    for (operator, values, expected) in [
        ("In", &["prod", "stage"][..], [true, false, false]),
        ("NotIn", &["prod", "stage"], [false, true, true]),
        ("Exists", &[], [true, true, false]),
        ("DoesNotExist", &[], [false, false, true]),
    ] {
        let selector = selector(&[("env", operator, values)]).unwrap();
        let found = [&prod, &test, &none].map(|labels| selector.matches(labels));
        assert_eq!(found, expected, "{operator}");
    }
}

#[test]
fn labels_must_meet_every_requirement() {
    let both = Selector::new([("env", "prod"), ("zone", "")], []).unwrap();
    assert!(both.matches(&labels(&[("env", "prod"), ("zone", ""), ("other", "x")])));
    assert!(!both.matches(&labels(&[("env", "prod"), ("zone", "a")])));
    assert!(!both.matches(&labels(&[("zone", "")])));
    assert!(Selector::default().matches(&labels(&[])));
}

#[test]
fn operators_and_counts_of_values_are_checked() {
    let error = |operator: &str, values: &[&str]| {
        let error = selector(&[("a", operator, values)]).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        error("Equals", &["x"]),
        "\"Equals\" is not a valid label selector operator"
    );
    let count = "for 'in', 'notin' operators, values set can't be empty";
    for operator in ["In", "NotIn"] {
        assert_eq!(
            error(operator, &[]),
            format!("values: Invalid value: []: {count}")
        );
    }
    for operator in ["Exists", "DoesNotExist"] {
        assert_eq!(
            error(operator, &["x", "y"]),
            "values: Invalid value: [\"x\",\"y\"]: values set must be empty for exists and does not exist"
        );
    }
}

#[test]
fn keys_are_checked() {
    let check = |key: &str| selector(&[(key, "Exists", &[])]).map_err(|error| error.to_string());
    let (name, part) = ("a".repeat(63), "b".repeat(63));
    let prefix = [&part; 4].map(String::as_str).join(".");
    let prefix = &prefix[..SUBDOMAIN_MAX];
    for good in [
        "a",
        "A.b_c-9",
        "example.com/a",
        &name,
        &format!("{prefix}/{name}"),
    ] {
        assert!(check(good).is_ok(), "{good}");
    }
    for (bad, reason) in [
        ("", "name part must be non-empty"),
        ("example.com/", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        (
            &format!("{name}a"),
            "name part must be no more than 63 characters",
        ),
        (
            &format!("{prefix}b/a"),
            "prefix part must be no more than 253 characters",
        ),
        ("Example.com/a", &format!("prefix part {SUBDOMAIN_RULE}")),
        ("a/b/c", NAME_RULE),
        ("-a", NAME_RULE),
        ("a-", NAME_RULE),
        ("a b", NAME_RULE),
        ("\u{e4}", NAME_RULE),
    ] {
        let expected = format!("key: Invalid value: {}: {reason}", olm_version::go_quote(bad));
        assert_eq!(check(bad).unwrap_err(), expected);
    }
}

#[test]
fn values_are_checked() {
    let check = |value: &str| selector(&[("a", "In", &["x", value])]).map_err(|error| error.to_string());
    let long = "v".repeat(63);
    for good in ["", "V", "a.b_c-9", &long] {
        assert!(check(good).is_ok(), "{good}");
    }
    for (bad, reason) in [
        (&*format!("{long}v"), "must be no more than 63 characters"),
        ("-a", VALUE_RULE),
        ("a.", VALUE_RULE),
        ("a/b", VALUE_RULE),
    ] {
        let expected = format!(
            "values[1][a]: Invalid value: {}: {reason}",
            olm_version::go_quote(bad)
        );
        assert_eq!(check(bad).unwrap_err(), expected);
    }
}
