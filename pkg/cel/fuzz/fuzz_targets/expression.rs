//! CEL expressions: none breaks the reader or the measure, and one that is measured as small is evaluated in time.
#![no_main]

use cel::Context;
use libfuzzer_sys::fuzz_target;
use olm_cel::{Expression, Value};

/// Length of the one variable.
const WIDEST: usize = 40;
/// Most steps of an evaluation.
const STEPS: u64 = 200_000;

fuzz_target!(|text: &str| {
    let Ok(expression) = Expression::parse(text) else {
        return;
    };
    assert_eq!(expression.source(), text);
    let _ = (expression.mentions(), expression.names("self"));
    assert!(expression.steps(0) <= expression.steps(WIDEST));
    if expression.steps(WIDEST) <= STEPS {
        let mut context = Context::default();
        let list: Vec<Value> = (0..WIDEST as i64).map(Value::Int).collect();
        context.add_variable_from_value("self", list);
        let _ = expression.evaluate(&context);
    }
});
