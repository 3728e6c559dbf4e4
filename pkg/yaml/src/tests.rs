use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json as value;

use super::*;

fn one(text: &str) -> Value {
    document(text.as_bytes(), &Limits::default()).unwrap()
}

fn all(text: &str) -> Vec<Value> {
    documents(text.as_bytes(), &Limits::default()).unwrap()
}

fn refusal(text: &str) -> String {
    documents(text.as_bytes(), &Limits::default())
        .unwrap_err()
        .to_string()
}

#[test]
fn scalars_follow_yaml_1_1() {
    let text = "{a: yes, b: on, c: 012, d: 1e3, e: 0o14, f: 2001-01-01, g: ~, h: 0x1F, i: 1_000, j: .5, k: NO, \
                l: '1', m: 08, nn: 1.2.3, o: 2021-01-01T00:00:00Z, p: -5, q: 1.0, r: !!str 5, 8080: x, 1e6: z}";
    assert_eq!(
        one(text),
        value!({"a": true, "b": true, "c": 10, "d": 1000, "e": 12, "f": "2001-01-01", "g": null, "h": 31, "i": 1000,
               "j": 0.5, "k": false, "l": "1", "m": 8, "nn": "1.2.3", "o": "2021-01-01T00:00:00Z", "p": -5, "q": 1,
               "r": "5", "8080": "x", "1e+06": "z"})
    );
}

#[test]
fn tags_demand_a_type() {
    let text =
        "[!!float 1, !!int '7', !!null '', !!binary aGk=, !!timestamp 2001-1-2, !own x, !!bool \"on\", ! 5]";
    assert_eq!(one(text), value!([1, 7, null, "hi", "2001-1-2", "x", true, "5"]));
    for text in [
        "!!int x",
        "!!bool 1",
        "!!null x",
        "!!float yes",
        "!!timestamp 2001-13-01",
        "!!binary '?'",
        "!e!x a",
    ] {
        assert!(document(text.as_bytes(), &Limits::default()).is_err(), "{text}");
    }
}

/// Checks the members and the precedence of every form of the merge key.
#[test]
fn merge_keys_lose_nothing() {
    let text = "base: &a {x: 1, z: 2}\nplain:\n  x: 9\n  <<: *a\ntagged:\n  !!merge <<: *a\n  x: 8\n\
                list: {<<: [*a, {q: 3, x: 7}]}\n";
    let value = one(text);
    assert_eq!(value["plain"], value!({"x": 1, "z": 2}));
    assert_eq!(value["tagged"], value!({"x": 8, "z": 2}));
    assert_eq!(value["list"], value!({"x": 1, "z": 2, "q": 3}));
    assert_eq!(one("\"<<\": {x: 1}"), value!({"<<": {"x": 1}}));
    assert!(refusal("a: &a [{x: 1}]\nb: {<<: *a}").contains("map merge requires"));
}

#[test]
fn quoted_scalars_continue_at_any_indentation() {
    let text = "a:\n    b: \"one\n  two\n\n three\\\n   four\"\n    c: 'x\ny'\n";
    assert_eq!(one(text), value!({"a": {"b": "one two\nthreefour", "c": "x y"}}));
}

#[test]
fn block_scalars_keep_what_they_say() {
    assert_eq!(
        one("a: |\n  x\n   y\n\nb: >-\n  x\n  y\n\n  z\nc: |+\n  x\n\n"),
        { value!({"a": "x\n y\n", "b": "x y\nz", "c": "x\n\n"}) }
    );
    // Lines that are indented more stand alone in a folded scalar.
    assert_eq!(one("a: >\n  x\n    y\n  z\n"), value!({"a": "x\n  y\nz\n"}));
    assert_eq!(one("a: |\n  end"), value!({"a": "end"}));
    // In a stream every line ends.
    assert_eq!(all("a: |\n  end"), [value!({"a": "end\n"})]);
}

#[test]
fn empty_documents_vanish_and_the_last_key_wins() {
    assert_eq!(
        all("a: 1\na: 2\n---\n---\n# nothing\n---\nb: 1\n"),
        [value!({"a": 2}), value!({"b": 1})]
    );
    let keys = repeated_keys(
        b"# c\n---\nx: 1\n---\na: 1\na: 2\nb: {<<: {c: 1}, c: 2}\n",
        &Limits::default(),
    );
    assert_eq!(
        keys,
        [RepeatedKey {
            line: 6,
            key: "a".to_owned()
        }]
    );
}

#[test]
fn json_streams_may_go_on_as_yaml() {
    assert_eq!(
        all("{\"a\": 1.0}{\"b\": [\"}\"]}"),
        [value!({"a": 1}), value!({"b": ["}"]})]
    );
    assert_eq!(
        all("{\"a\": 1}\n---\nb: 2\n"),
        [value!({"a": 1}), value!({"b": 2})]
    );
    assert_eq!(all("{a: 1}\n---\n{b: 2}\n"), [value!({"a": 1}), value!({"b": 2})]);
    assert_eq!(
        all("{\"a\": 1}\n  b: 2\n  c: 3\n"),
        [value!({"a": 1}), value!({"b": 2, "c": 3})]
    );
    assert!(refusal("{}{}\n---\na: 1\n").contains("malformed JSON"));
    assert!(refusal("{\"a\": ").contains("EOF"));
    assert_eq!(
        all(r#"{"a": "\ud800x\ud83d\ude00\\ud800"}"#),
        [value!({"a": "\u{fffd}x😀\\ud800"})]
    );
    assert_eq!(
        json(b"\"\xff\xfe\"", &Limits::default()).unwrap(),
        value!("\u{fffd}\u{fffd}")
    );
}

#[test]
fn faults_have_the_messages_and_lines_of_gos_reader() {
    for (text, want) in [
        (
            "a: 1\nb: [x\nc: 2\n",
            "yaml: line 2: did not find expected ',' or ']'",
        ),
        (
            "a: b: c\n",
            "yaml: mapping values are not allowed in this context",
        ),
        ("a:\n  - x\n b: 1\n", "yaml: line 2: did not find expected key"),
        ("a: \"x\\q\"\n", "yaml: found unknown escape character"),
        ("a: 1\n---b\n", "yaml: invalid Yaml document separator: b"),
        ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]\n", "yaml: anchor 'x' value contains itself"),
        ("a: \u{1}\n", "yaml: control characters are not allowed"),
        ("? [a]\n: b\n", "yaml: invalid map key: a list or a map"),
        ("a: .nan\n", "yaml: NaN has no JSON form"),
    ] {
        assert_eq!(refusal(text), want, "{text}");
    }
}

#[test]
fn both_encodings_of_unicode_are_read() {
    let text = "\u{feff}a: é😀";
    for encode in [u16::to_le_bytes, u16::to_be_bytes] {
        let bytes: Vec<u8> = text.encode_utf16().flat_map(encode).collect();
        assert_eq!(
            document(&bytes, &Limits::default()).unwrap(),
            value!({"a": "é😀"})
        );
    }
    assert_eq!(one(text), value!({"a": "é😀"}));
    assert!(document(b"a: \xff", &Limits::default()).is_err());
}

/// Each directive is compared with all others, so their number must be bounded: a million of them would take an hour.
#[test]
fn tag_directives_are_bounded() {
    let directives =
        |count: usize| (0..count).fold(String::new(), |text, at| format!("{text}%TAG !h{at}! t:\n"));
    assert_eq!(one(&format!("{}---\n!h63!x a\n", directives(64))), value!("a"));
    let refused = refusal(&format!("{}---\na\n", directives(65)));
    assert!(refused.contains("found too many %TAG directives"), "{refused}");
}

#[test]
fn aliases_depth_and_memory_are_bounded() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", vec![before; 10].join(",")).unwrap();
    }
    assert!(refusal(&bomb).contains("excessive aliasing"));
    assert!(matches!(
        document("[".repeat(100_000).as_bytes(), &Limits::default()),
        Err(YamlError::TooDeep { limit: 100 })
    ));
    // Every level is shallow by itself, the chain of aliases is not.
    let mut tower = "a0: &a0 x\n".to_owned();
    for level in 1..500 {
        writeln!(tower, "a{level}: &a{level} [[[[[[[[*a{}]]]]]]]]", level - 1).unwrap();
    }
    assert!(refusal(&tower).contains("nested deeper"));
    // A few bytes of text for each small list are much more memory.
    let lists = "[0],".repeat(1 << 20);
    assert!(refusal(&format!("[{lists}]")).contains("bytes of memory"));
    let limits = Limits {
        max_bytes: 10,
        ..Limits::default()
    };
    assert!(matches!(
        documents(b"a: 123456789", &limits),
        Err(YamlError::TooLarge { limit: 10 })
    ));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e30..1e30_f64).prop_map(Value::from),
        "[ -~é\\n\\t]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map("[ -~é\\n]{0,8}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = documents(&bytes, &Limits::default());
        let _ = document(&bytes, &Limits::default());
        repeated_keys(&bytes, &Limits::default());
    }

    #[test]
    fn no_text_breaks_the_parser(text in "[-?:,\\[\\]{}#&*!|>'\"%@`\\\\ \\ta-c0-9<~\\n]{0,60}") {
        let _ = documents(text.as_bytes(), &Limits::default());
        let _ = document(text.as_bytes(), &Limits::default());
    }

    /// JSON is YAML, but for the line breaks of Unicode, which YAML 1.1 folds in strings.
    #[test]
    fn json_reads_the_same_as_yaml(value in any_json()) {
        let text = value.to_string();
        let read = json(text.as_bytes(), &Limits::default()).unwrap();
        prop_assert_eq!(&document(text.as_bytes(), &Limits::default()).unwrap(), &read);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(document(pretty.as_bytes(), &Limits::default()).unwrap(), read);
    }

    #[test]
    fn a_stream_is_cut_alike_wherever_reads_end(
        parts in proptest::collection::vec("(a: [0-9]\\n|---\\n|\\{\"b\": 1\\}\\n?|\\r\\n|# c\\n|\"\\\\\" \\}\"| x)", 0..8),
        size in 1..9_usize,
    ) {
        struct Dripping<'a>(&'a [u8], usize);
        impl std::io::Read for Dripping<'_> {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                let count = self.1.min(out.len());
                self.0.read(&mut out[..count])
            }
        }
        let cut = |reader: &mut dyn std::io::Read| {
            let mut frames = Frames::new(reader, Limits::default());
            let mut found = Vec::new();
            while let Ok(Some(frame)) = frames.next() {
                let frame = format!("{frame:?}");
                found.push((frame, frames.start(), frames.line()));
            }
            found
        };
        let text = parts.concat();
        prop_assert_eq!(cut(&mut Dripping(text.as_bytes(), size)), cut(&mut text.as_bytes()));
    }
}
