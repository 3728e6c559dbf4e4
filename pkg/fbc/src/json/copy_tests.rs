use proptest::prelude::*;

use super::*;
use crate::json::parse;

/// Result of a reading, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Seen {
    Fields(Vec<(String, String)>),
    OfOther,
    Ambiguous,
}

fn seen(read: &Read) -> Seen {
    match read {
        Read::Fields(fields) => Seen::Fields(
            fields
                .iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        ),
        Read::OfOther => Seen::OfOther,
        Read::Ambiguous => Seen::Ambiguous,
    }
}

/// Checks that what is copied is what is parsed. Returns true if the text was copied.
fn agrees(text: &[u8], limit: usize, package: Option<&str>) -> bool {
    let Some(copied) = copy(text, limit, package) else {
        return false;
    };
    let shown = String::from_utf8_lossy(text);
    match parse(text, limit, package) {
        Ok(parsed) => assert_eq!(seen(&copied), seen(&parsed), "{shown}"),
        Err(error) => panic!("{shown} is copied, but {error}"),
    }
    true
}

#[test]
fn whatever_is_valid_is_copied() {
    for text in [
        "{}",
        " { } ",
        r#"{"a":"","b":[],"c":{},"d":[[],{}],"e":[1,"x",null,true,false]}"#,
        r#"{"b":{"z":1,"a":[{"y":[],"x":{}}],"z":2},"a":[1,[],[2]], "a":null}"#,
        r#"{"k":{"b":1,"\u0061":{"d":1,"c":2},"a":{"f":1,"e":2}}}"#,
        r#"{"k":{"]":1,"\\":2,"[":3,"\"":4,"!":5,"\u2028":6,"\u2030":7,"\u2027":8,"\n":9,"\u001f":0,"a":1,"a\u0000":2}}"#,
        r#"{"a":{"a b":1,"a":2,"a!":3,"a\"":4}}"#,
        "{\"a\":\"\u{2028}\u{2029}\u{2030}\u{20ac}\u{1f600}\u{7f}\",\"\u{2028}\":{\"\u{2028}\":1,\"\u{2027}\":2}}",
        r#"{"a":"\/\b\f\n\r\t\\\"\u0026\u0008\ud83d\ude00"}"#,
        "\t{\r\n\"a\" :\t[ 1 ,\n2 ] , \"b\" : { \"c\" : 1 , \"d\" : 2 } }\n",
        r#"{"a":[0,-0,1,-1,1.0,-0.0,1e2,1E+2,1e-7,123456789012345678,1234567890123456789]}"#,
        r#"{"a":[18446744073709551615,18446744073709551616,-9223372036854775808,-9223372036854775809]}"#,
    ] {
        assert!(agrees(text.as_bytes(), 1000, None), "{text}");
    }
}

#[test]
fn what_is_not_valid_is_left_to_the_parser() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for text in [
        "",
        " ",
        "{",
        "[]",
        "1",
        "{}{}",
        "{},",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[1 2]}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":tru}"#,
        r#"{"a":truex}"#,
        r#"{"a":nul}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":+1}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":1e}"#,
        r#"{"a":1-2}"#,
        r#"{"a":1e999}"#,
        r#"{"a":"}"#,
        r#"{"a":"\"}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u00"}"#,
        r#"{"a":"\u00zz"}"#,
        "{\"a\":\"\n\"}",
        "{\"a\":\"\u{1f}\"}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":\u{a0}1}",
        r#"{"a":"\ud800"}"#,
        r#"{"a":[}]"#,
        &deep,
    ] {
        assert!(!agrees(text.as_bytes(), 1000, None), "{text}");
    }
    assert!(!agrees(b"{\"a\":\"\xff\"}", 1000, None));
    assert!(!agrees(br#"{"a":[1e20,1e20]}"#, 40, None), "beyond the limit");
    assert!(agrees(br#"{"a":[1e20,1e20]}"#, 45, None));
}

#[test]
fn an_object_of_another_package_is_known_by_its_last_field() {
    let last = br#"{"name":"b.v1","package":"b","schema":"olm.bundle"}"#;
    assert!(agrees(last, 1000, Some("a")));
    assert!(matches!(copy(last, 1000, Some("a")), Some(Read::OfOther)));
    assert!(matches!(copy(last, 1000, Some("b")), Some(Read::Fields(_))));
    // The parser passes over the other fields.
    let first = br#"{"schema":"olm.bundle","package":"b","name":"b.v1"}"#;
    assert!(copy(first, 1000, Some("a")).is_none());
}

/// A JSON text, with escapes, white space, numbers and repeated keys as people and programs write them.
fn json(depth: u32) -> impl Strategy<Value = String> {
    let string = prop_oneof![
        "[a-c]{0,2}",
        "[ -!#-\\[\\]-~é€\u{2027}-\u{202a}\u{e000}]{0,20}",
        "(a|\\\\n|\\\\\"|\\\\\\\\|\\\\/|\\\\u0041|\\\\u2028|\\\\u001F|\\\\b|\\\\ud83d\\\\ude00){0,8}",
    ]
    .prop_map(|inner| format!("\"{inner}\""));
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has none", |number| number.is_finite())
            .prop_map(|number| format!("{number:?}")),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
    ];
    let key = string.clone();
    let word = prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(str::to_owned);
    let leaf = prop_oneof![string, number, word];
    leaf.prop_recursive(depth, 40, 6, move |inner| {
        let space = "[ \n\t\r]{0,2}";
        let item = (space, inner.clone(), space).prop_map(|(before, item, after)| before + &item + &after);
        let member = (space, key.clone(), space, item.clone())
            .prop_map(|(before, key, after, item)| format!("{before}{key}{after}:{item}"));
        prop_oneof![
            proptest::collection::vec(item, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

/// An object with fields that tell its package, in any order.
fn object() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("schema".to_owned()),
        Just("package".to_owned()),
        Just("name".to_owned()),
        Just("Package".to_owned()),
        Just("pack\\u0061ge".to_owned()),
        "[a-c]{0,2}",
    ];
    let owner = prop_oneof![Just("\"a\""), Just("\"b\""), Just("\"olm.package\"")].prop_map(str::to_owned);
    let member = (key, prop_oneof![owner, json(3)]).prop_map(|(key, value)| format!("\"{key}\":{value}"));
    proptest::collection::vec(member, 0..8).prop_map(|members| format!("{{{}}}", members.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_copied_is_what_is_parsed(text in object()) {
        prop_assert!(agrees(text.as_bytes(), 1 << 20, None), "{}", text);
        agrees(text.as_bytes(), 1 << 20, Some("a"));
        agrees(text.as_bytes(), text.len() / 2, None);
    }

    /// Damaged text is never copied as something else than it is parsed.
    #[test]
    fn damage_is_found_by_both(
        text in object(), at in any::<prop::sample::Index>(), byte in prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(b'}'), Just(b',')],
        kind in 0..3_u8,
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match kind {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
        agrees(&bytes, 1 << 20, None);
    }
}
