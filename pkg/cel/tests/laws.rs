//! Properties of expressions that hold for every text; the fuzz target covers more.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use cel::Context;
use olm_cel::{BYTES, Expression, Value};
use proptest::prelude::*;

/// Length of the variable.
const WIDEST: usize = 40;
/// Maximum number of steps of an evaluation.
const STEPS: u64 = 200_000;

fn look(text: &str) {
    let Ok(expression) = Expression::parse(text) else {
        return;
    };
    assert_eq!(expression.source(), text);
    let _ = (expression.mentions(), expression.names("self"));
    assert!(expression.steps(0) <= expression.steps(WIDEST), "{text}");
    if expression.steps(WIDEST) <= STEPS {
        let mut context = Context::default();
        let list: Vec<Value> = (0..WIDEST)
            .map(|at| Value::Int(i64::try_from(at).unwrap()))
            .collect();
        context.add_variable_from_value("self", list);
        let _ = expression.evaluate(&context);
    }
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
