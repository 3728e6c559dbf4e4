//! Reading catalog files: forms, oddities and hostile input.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and read files"
)]

use olm_fbc::{DecodeError, Limits, Meta, PackageContent, decode};
use proptest::prelude::*;
use std::io::Read;

fn metas(text: &str) -> Result<Vec<Meta>, DecodeError> {
    limited(text, &Limits::default())
}

fn limited(text: &str, limits: &Limits) -> Result<Vec<Meta>, DecodeError> {
    decode(text.as_bytes(), limits).collect()
}

fn blobs(text: &str) -> String {
    let metas = metas(text).expect("a sound file");
    metas
        .into_iter()
        .map(|meta| String::from_utf8(meta.blob).expect("UTF-8"))
        .collect()
}

/// The fault of a file, without the position.
fn fault(text: &str, limits: &Limits) -> DecodeError {
    match limited(text, limits).expect_err("a faulty file") {
        DecodeError::Document { fault, .. } => *fault,
        other => other,
    }
}

#[test]
fn keys_of_a_meta_are_limited() {
    let keys =
        |count: usize| (0..count).fold(String::new(), |text, number| text + &format!(",\"k{number}\":0"));
    for (count, taken) in [(10_000, true), (17_000, false)] {
        let json = format!("{{\"schema\":\"olm.package\",\"name\":\"a\"{}}}", keys(count));
        let yaml = (0..count).fold("schema: olm.package\nname: a\n".to_owned(), |text, number| {
            text + &format!("k{number}: 0\n")
        });
        for text in [json, yaml] {
            let read = decode(text.as_bytes(), &Limits::default()).next().unwrap();
            let Err(error) = read else {
                assert!(taken, "{count} keys");
                continue;
            };
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(!taken && cause.contains("more than 16384 keys"), "{cause}");
        }
    }
}

#[test]
fn yaml_oddities_are_read_as_kubernetes_reads_them() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/testdata/fbc/");
    let read = |name: &str| std::fs::read_to_string(format!("{root}{name}")).expect("testdata");
    assert_eq!(blobs(&read("quirks.yaml")), read("quirks.jsonl"));
}

#[test]
fn canonical_bytes_are_a_fixed_point() {
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../test/testdata/fbc/quirks.jsonl"
    );
    let text = std::fs::read_to_string(root).expect("testdata");
    assert_eq!(blobs(&text), text);
}

/// Gives a few bytes at a time, as a slow pipe does.
struct Dripping<'a>(&'a [u8], usize);

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let room = self.1.min(buffer.len());
        self.0.read(&mut buffer[..room])
    }
}

#[test]
fn where_reads_end_changes_nothing() {
    let text = concat!(
        r#" {"name":"a\\","s":"\"}{[\\\" ]","t":["\u007d","\\"]}"#,
        "\n",
        r#"{"name":"b","n":{"q":"\\\\"}}{"name":"c","e":""}"#
    );
    let whole = blobs(text);
    assert_eq!(whole.lines().count(), 3, "{whole}");
    for size in 1..40 {
        let metas: Vec<Meta> = decode(Dripping(text.as_bytes(), size), &Limits::default())
            .collect::<Result<_, _>>()
            .expect("a sound file");
        let parts: Vec<String> = metas
            .into_iter()
            .map(|meta| String::from_utf8(meta.blob).expect("UTF-8"))
            .collect();
        assert_eq!(parts.concat(), whole, "{size} bytes at a time");
    }
}

#[test]
fn json_values_need_nothing_between_them() {
    let text = " \n{\"name\":\"a\",\"z\":1.0,\"b\":\"}{\\\"\"}{\"name\":\"b\"}\n\n{ \"name\" : \"c\" }";
    assert_eq!(
        blobs(text),
        "{\"b\":\"}{\\\"\",\"name\":\"a\",\"z\":1}\n{\"name\":\"b\"}\n{\"name\":\"c\"}\n"
    );
}

#[test]
fn schema_package_and_name_are_found_in_any_case() {
    let metas = metas(r#"{"Schema":"s","PACKAGE":"p","nAme":"n"}"#).expect("sound");
    assert_eq!(
        (
            metas[0].schema.as_str(),
            metas[0].package.as_str(),
            metas[0].name.as_str()
        ),
        ("s", "p", "n")
    );
    // The long s and the Kelvin sign fold to s and k.
    let text = "{\"\u{17f}chema\":\"s\",\"pac\u{212a}age\":\"p\"}";
    let metas = self::metas(text).expect("sound");
    assert_eq!((metas[0].schema.as_str(), metas[0].package.as_str()), ("s", "p"));
}

#[test]
fn keys_that_differ_in_case_only_are_refused() {
    let error = fault(r#"{"schema":"s","a":1,"A":2}"#, &Limits::default());
    assert_eq!(error.to_string(), r#"duplicate keys for key "a": [A a]"#);
    // Go's decoder accepts a repeated key: the last value wins, in JSON as in YAML.
    assert_eq!(blobs(r#"{"x":1,"x":2}"#), "{\"x\":2}\n");
    assert_eq!(blobs("x: 1\nx: 2\n"), "{\"x\":2}\n");
}

#[test]
fn each_fault_has_its_own_error() {
    let limits = Limits {
        max_meta_bytes: 200,
        max_depth: 5,
        max_documents: 3,
    };
    let long = "x".repeat(300);
    for (text, wanted) in [
        (format!("{{\"a\":\"{long}\"}}"), "TooLarge"),
        (format!("a: {long}"), "TooLarge"),
        ("{\"a\":[[[[[[1]]]]]]}".to_owned(), "TooDeep"),
        ("a: [[[[[[1]]]]]]".to_owned(), "TooDeep"),
        ("{}{}{}{}".to_owned(), "TooMany"),
        ("a: 1\n---\na: 1\n---\na: 1\n---\na: 1\n".to_owned(), "TooMany"),
        ("{\"a\":".to_owned(), "Text(Json"),
        ("{\"a\" 1}".to_owned(), "Text(Json"),
        ("{} []".to_owned(), "NotAnObject"),
        ("- a\n".to_owned(), "NotAnObject"),
        ("hello".to_owned(), "NotAnObject"),
        ("a: [".to_owned(), "Text(Syntax"),
        ("a: .nan".to_owned(), "Text(Syntax"),
        ("a: *nowhere".to_owned(), "Text(Syntax"),
        ("? [a]\n: 1".to_owned(), "Text(Syntax"),
        ("{\"schema\":1}".to_owned(), "NotAString"),
        ("schema: 1.0".to_owned(), "NotAString"),
        ("name: null".to_owned(), "NotAString"),
    ] {
        let error = fault(&text, &limits);
        assert!(format!("{error:?}").starts_with(wanted), "{text}: {error:?}");
    }
}

#[test]
fn alias_bombs_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        text = format!("{text}a{level}: &a{level} [{below}]\n");
    }
    let bomb = fault(&text, &Limits::default()).to_string();
    assert_eq!(bomb, "yaml: document contains excessive aliasing");
    let cycle = fault("a: &a [*a]", &Limits::default()).to_string();
    assert_eq!(cycle, "yaml: anchor 'a' value contains itself");
}

#[test]
fn a_stream_is_read_one_meta_at_a_time() {
    /// An endless file of small metas.
    struct Endless;
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let meta = b"{\"schema\":\"s\"}\n";
            let count = meta.len().min(buffer.len());
            buffer[..count].copy_from_slice(&meta[..count]);
            Ok(count)
        }
    }
    assert_eq!(
        decode(Endless, &Limits::default()).take(1000).flatten().count(),
        1000
    );
    let limits = Limits {
        max_documents: 10,
        ..Limits::default()
    };
    let all: Vec<_> = decode(Endless, &limits).collect();
    assert!(
        matches!(all.last(), Some(Err(DecodeError::TooMany { limit: 10 }))),
        "the iterator ends after an error"
    );
    assert_eq!(all.len(), 11);
}

#[test]
fn an_endless_value_is_given_up_at_the_limit() {
    for start in ["{\"a\":\"", "a: "] {
        let limits = Limits {
            max_meta_bytes: 100_000,
            ..Limits::default()
        };
        let endless = start.as_bytes().chain(std::io::repeat(b'x'));
        let error = decode(endless, &limits)
            .next()
            .expect("an item")
            .expect_err("too large");
        let DecodeError::Document { document: 1, fault } = error else {
            panic!("{error:?}")
        };
        assert!(matches!(*fault, DecodeError::TooLarge { limit: 100_000 }));
    }
}

#[test]
fn a_package_is_collected_in_the_order_of_its_names() {
    let text = r#"
        {"schema":"olm.bundle","package":"p","name":"b","image":"old"}
        {"schema":"olm.bundle","package":"q","name":"a"}
        {"schema":"olm.bundle","package":"p","name":"b-1","properties":[{"type":"olm.csv.metadata","value":{"x":1}},{"type":"t"}]}
        {"schema":"olm.bundle","package":"p","Name":"b","image":"new","properties":null}
        {"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"b","skips":null,"skipRange":null}]}
        {"schema":"olm.package","name":"p"}
        {"schema":"olm.package","name":"q"}
    "#;
    let content = PackageContent::from_metas("p", metas(text).expect("sound")).expect("sound");
    let bundles: Vec<_> = content
        .bundles
        .iter()
        .map(|b| (b.name.as_str(), b.image.as_str()))
        .collect();
    // Files sort like this: b-1.json before b.json.
    assert_eq!(bundles, [("b-1", ""), ("b", "new")]);
    assert_eq!(content.bundles[0].properties.len(), 1, "manifests are not kept");
    assert_eq!(content.channels[0].entries[0].name, "b");
    assert!(content.package.is_some());
    assert!(
        PackageContent::from_metas("none", metas(text).expect("sound"))
            .expect("sound")
            .is_empty()
    );
}

#[test]
fn lifecycles_come_with_their_package_and_never_break_it() {
    let text = r#"
        {"schema":"olm.bundle","package":"p","name":"b"}
        {"schema":"io.openshift.operators.lifecycles.v1alpha1","package":"p","versions":[{"name":"1.0","phases":[]}]}
        {"schema":"io.openshift.operators.lifecycles.v1alpha1","package":"p","versions":7}
        {"schema":"io.openshift.operators.lifecycles.v1alpha1","package":"q","versions":[{"name":"1.1","phases":[]}]}
        {"schema":"io.openshift.operators.lifecycles.v2","package":"p","versions":[{"name":"1.2","phases":[]}]}
    "#;
    let of = |name| PackageContent::from_metas(name, metas(text).expect("sound")).expect("sound");
    let content = of("p");
    let versions: Vec<_> = content
        .lifecycles
        .versions()
        .map(|(version, _)| version.to_string())
        .collect();
    assert_eq!(versions, ["1.0"]);
    assert_eq!(content.lifecycles.ignored().len(), 1);
    assert!(!content.is_empty());
    assert!(
        of("q").is_empty(),
        "a package that has nothing else does not exist for the resolution"
    );
}

#[test]
fn malformed_content_names_the_object() {
    let text = r#"{"schema":"olm.channel","package":"p","name":"c","entries":7}"#;
    let error = PackageContent::from_metas("p", metas(text).expect("sound")).expect_err("malformed");
    assert_eq!(
        error.to_string(),
        r#"error loading package "p": olm.channel "c" is malformed"#
    );
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in ".{0,60}") {
        let _ = metas(&text);
        let _ = metas(&format!("a: {text}"));
        let _ = metas(&format!("{{\"a\":{text}"));
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = decode(bytes.as_slice(), &Limits::default()).count();
    }

    #[test]
    fn both_forms_of_a_value_give_the_same_bytes(text in "[ -~é]{0,20}", number in any::<i64>(), float in -1e30f64..1e30) {
        let json = serde_json::json!({"schema": "s", "t": text, "n": number, "f": float, "l": [text, {"k": null}]});
        let once = blobs(&json.to_string());
        prop_assert_eq!(&blobs(&once), &once);
        prop_assert_eq!(blobs(&format!("---\n{json}")), once);
    }
}

/// Returns true if a meta belongs to package `a`, or to none.
fn is_of_a(meta: &Meta) -> bool {
    let owner = if meta.schema == "olm.package" {
        &meta.name
    } else {
        &meta.package
    };
    owner == "a" || owner.is_empty()
}

fn of_a(text: &str) -> Result<Vec<Meta>, DecodeError> {
    decode(text.as_bytes(), &Limits::default())
        .of_package("a")
        .collect()
}

#[test]
fn metas_of_other_packages_are_passed_over() {
    let other =
        r#"{"schema":"olm.bundle","name":"b.v1","package":"b","properties":[{"type":"x","value":1}]}"#;
    assert_eq!(metas(other).expect("sound").len(), 1);
    assert_eq!(of_a(other).expect("passed over"), []);
    let broken = other.replace("1}", "}]");
    assert!(of_a(&broken).is_err(), "neither JSON nor YAML");
    // What tells the package twice is read whole, so that the last value of a key wins and keys do not differ in case alone.
    let twice = r#"{"schema":"olm.bundle","package":"b","name":"x","package":"a"}"#;
    assert_eq!(of_a(twice).expect("sound"), metas(twice).expect("sound"));
    assert!(of_a(r#"{"schema":"olm.bundle","package":"b","name":"x","Package":"a"}"#).is_err());
    let text = format!("{other}\n[]");
    let second = decode(text.as_bytes(), &Limits::default()).of_package("a").next();
    assert!(
        matches!(second, Some(Err(DecodeError::Document { document: 2, .. }))),
        "{second:?}"
    );
    let few = Limits {
        max_documents: 1,
        ..Limits::default()
    };
    let text = other.repeat(2);
    let mut two = decode(text.as_bytes(), &few).of_package("a");
    assert!(
        matches!(two.next(), Some(Err(DecodeError::TooMany { limit: 1 }))),
        "counted"
    );
}

proptest! {
    /// Fields in any order, as JSON and YAML: of the wanted package nothing is lost, and nothing differs.
    #[test]
    fn metas_of_the_wanted_package_are_equal(
        list in proptest::collection::vec(
            (prop_oneof![Just("olm.package"), Just("olm.bundle"), Just("other"), Just("")],
             prop_oneof![Just("a"), Just("b"), Just("")], prop_oneof![Just("a"), Just("b"), Just("a\\u0062")], 0..24_usize),
            0..8,
        ),
        yaml in any::<bool>(),
    ) {
        let text: String = list.iter().map(|(schema, package, name, order)| {
            let mut fields = [
                format!("\"schema\": \"{schema}\""), format!("\"package\": \"{package}\""),
                format!("\"name\": \"{name}\""), "\"more\": [{\"b\": 1, \"a\": 2}]".to_owned(),
            ];
            fields.swap(0, order % 4);
            fields.swap(1, 1 + order / 4 % 3);
            fields.swap(2, 2 + order / 12);
            if yaml { format!("---\n{}\n", fields.join("\n")) } else { format!("{{{}}}\n", fields.join(",")) }
        }).collect();
        let whole: Vec<Meta> = metas(&text).expect("sound").into_iter().filter(is_of_a).collect();
        let found: Vec<Meta> = of_a(&text).expect("sound").into_iter().filter(is_of_a).collect();
        prop_assert_eq!(whole, found);
    }
}
