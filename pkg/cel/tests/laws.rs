//! Properties of expressions that hold for every text; the fuzz target covers more.

use cel::Context;
use std::time::{Duration, Instant};

use olm_cel::{BYTES, Expression, Operand, Predicate};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Maximum number of steps of an evaluation.
const STEPS: u64 = 200_000;
/// Much more than an evaluation of so many steps takes without optimization on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

fn look(text: &str) {
    let Ok(expression) = Expression::parse(text) else {
        return;
    };
    assert_eq!(expression.source(), text);
    let _ = (expression.mentions(), expression.names("self"));
    let list: Vec<usize> = (0..40).collect();
    let (empty, full) = (json!([]), json!(list));
    let steps = |value| expression.steps(&[("self", Operand::Json(value))]);
    assert!(steps(&empty) <= steps(&full), "{text}");
    if steps(&full) <= STEPS {
        let mut context = Context::default();
        context.add_variable_from_value("self", olm_cel::value(&full));
        in_time(text, || expression.evaluate(&context));
    }
}

#[expect(clippy::disallowed_methods, reason = "the time of an evaluation is measured")]
fn in_time<T>(text: &str, evaluate: impl FnOnce() -> T) {
    let begun = Instant::now();
    let _ = evaluate();
    assert!(begun.elapsed() < LIMIT, "{text}");
}

/// Asks a predicate about any object.
fn ask(text: &str, object: &Value) {
    if let Ok(predicate) = Predicate::parse(text) {
        assert_eq!(predicate.source(), text);
        in_time(text, || predicate.holds(object));
    }
}

/// Any JSON value.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        "a{0,2000}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-c]|.{0,4}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Fragments of expressions, so that many texts can be parsed.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "self",
        "1",
        "-9223372036854775808",
        "0",
        "'a'",
        "\"\\u00e9\"",
        "b'\\xff'",
        "null",
        "true",
        "[1, 2]",
        "{'a': 1}",
        "x",
        ".size()",
        ".all(x, x > 1)",
        ".map(x, [x, x])",
        ".filter(x, true)",
        ".exists_one(x, self.exists(y, y == x))",
        "[0]",
        "[-1]",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " in ",
        " && ",
        " || ",
        " ? ",
        " : ",
        "!",
        "-",
        "(",
        ")",
        ".a",
        "has(self.a)",
        "string(",
        "int(",
        ".matches('(a+)+$')",
        "timestamp('9999-12-31T23:59:59Z')",
        "duration('1h')",
        ",",
        "self.a",
        "self.b['c']",
        ".map(x, x + x)",
        ".filter(x, x != '')",
        ".exists(x, x == self)",
        ".replace('', self.a)",
        ".replace('a', 'aaaaaaaa')",
        ".split('')",
        ".join(self.a)",
        ".indexOf('ab')",
        ".substring(1)",
        ".lowerAscii()",
        "double(",
        "type(",
        " < ",
        "{self.a: self}",
        "[self, self]",
    ];
    prop::sample::select(words.to_vec()).prop_map(ToOwned::to_owned)
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in ".{0,60}") {
        look(&text);
    }

    #[test]
    fn no_sum_of_pieces_breaks_the_evaluation(pieces in prop::collection::vec(piece(), 1..8)) {
        look(&pieces.concat());
    }

    #[test]
    fn no_predicate_breaks_on_any_object(
        pieces in prop::collection::vec(piece(), 1..12), object in object(),
    ) {
        let text = pieces.concat();
        ask(&text, &object);
        ask(&format!("({text}) == self.a"), &object);
        ask(&format!("self.all(x, ({text}) == x)"), &object);
    }
}

#[test]
fn values_that_grow_are_bounded() {
    let text = "a".repeat(1000);
    for piece in [
        ".map(x, x + x)",
        ".map(x, [x, x])",
        ".map(x, {x: x})",
        ".map(x, x.replace('a', x))",
    ] {
        for times in 1..40 {
            ask(&format!("[self]{} == [self]", piece.repeat(times)), &json!(text));
            ask(
                &format!("self.a{}.size() == 1", piece.repeat(times)),
                &json!({"a": [text, text]}),
            );
        }
    }
    for times in 1..200 {
        ask(
            &format!("self{} == ''", ".replace('a', 'aaaa')".repeat(times)),
            &json!(text),
        );
        ask(
            &format!("{} == ''", vec!["self"; times].join(" + ")),
            &json!(text.repeat(1000)),
        );
    }
}

#[test]
fn no_nesting_breaks_the_parser() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{1: ", "}"),
        ("!", ""),
        ("-", ""),
        ("a.b(", ")"),
        ("a ? b : ", "c"),
    ] {
        for depth in [30, 100, 1000, BYTES / 8] {
            look(&format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    look(&"self.map(x, ".repeat(5));
    look(&format!("self{}", ".map(x, self)".repeat(200)));
    look(&vec!["1"; 2000].join(" + "));
}
