//! CEL expressions: none breaks the reader or the measure, and one that is measured as small is evaluated in time.
#![no_main]

use cel::Context;
use libfuzzer_sys::fuzz_target;
use olm_cel::{Expression, Operand, Predicate};
use serde_json::json;

/// Length of the one variable.
const LENGTH: usize = 40;
/// Most steps of an evaluation.
const STEPS: u64 = 200_000;

fuzz_target!(|text: &str| {
    if let Ok(predicate) = Predicate::parse(text) {
        let _ = predicate.holds(&json!({"a": "aaaa", "b": {"c": [1, 2.5, null, true, "x"]}}));
    }
    let Ok(expression) = Expression::parse(text) else {
        return;
    };
    assert_eq!(expression.source(), text);
    let _ = (expression.mentions(), expression.names("self"));
    let (empty, full) = (json!([]), json!((0..LENGTH).collect::<Vec<_>>()));
    let steps = |value| expression.steps(&[("self", Operand::Json(value))]);
    assert!(steps(&empty) <= steps(&full));
    if steps(&full) <= STEPS {
        let mut context = Context::default();
        context.add_variable_from_value("self", olm_cel::value(&full));
        let _ = expression.evaluate(&context);
    }
});
