//! CEL expressions over a bundle's properties, bounded before they run.
//!
//! OLM's environment: `properties`, a list of `{type, value}`, and `semver_compare(a, b)`, which is negative, zero or
//! positive.

use std::sync::Arc;

use ::cel::{Context, ExecutionError, Value as Cel};
use olm_cel::{Expression, Operand, Size};
use olm_version::parse_version;
use serde_json::Value;

/// Maximum number of steps of one evaluation.
const MAX_STEPS: u64 = 200_000;

/// Compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Rule(Expression);

impl Rule {
    /// Compiles an expression.
    ///
    /// The error is the reason, as one phrase.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        Expression::parse(source).map(Self)
    }

    /// Returns the expression as written.
    pub(super) fn source(&self) -> &str {
        self.0.source()
    }

    /// Evaluates the expression against the properties of a bundle.
    ///
    /// The error is the reason why there is no result, as one phrase.
    pub(super) fn matches(&self, properties: &[Value]) -> Result<bool, String> {
        let size = Operand::Sized(Size::of_list(properties));
        if self.0.steps(&[("properties", size)]) > MAX_STEPS {
            return Err(format!("it could take more than {MAX_STEPS} steps"));
        }
        let mut context = Context::with_env(olm_cel::standard_environment());
        let list: Vec<Cel> = properties.iter().map(olm_cel::value).collect();
        context.add_variable_from_value("properties", list);
        context
            .add_function("semver_compare", semver_compare)
            .map_err(|error| error.to_string())?;
        match self.0.evaluate(&context) {
            Ok(Cel::Bool(answer)) => Ok(answer),
            Ok(_) => Err("its value is not a boolean".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the library hands arguments over by value"
)]
fn semver_compare(left: Arc<String>, right: Arc<String>) -> Result<i64, ExecutionError> {
    let version = |text: &str| {
        parse_version(text).map_err(|error| ExecutionError::function_error("semver_compare", error))
    };
    Ok(version(&left)?.cmp_precedence(&version(&right)?) as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_evaluation_may_take_the_maximum_of_steps() {
        // A loop in a loop takes most of the steps, further loops all but some of the rest, and each further constant takes two.
        let many: Vec<Value> = (0..120).map(|at| json!({"type": "t", "value": at})).collect();
        let size = Size::of_list(&many);
        let read = |loops: usize, constants: usize| {
            let text = "true || properties.all(a, properties.all(b, true))".to_owned();
            let text = text + &" || properties.all(c, true)".repeat(loops) + &" || true".repeat(constants);
            Rule::parse(&text).unwrap()
        };
        let steps = |rule: &Rule| rule.0.steps(&[("properties", Operand::Sized(size))]);
        let (none, one) = (steps(&read(0, 0)), steps(&read(1, 0)));
        let loops = (MAX_STEPS - none) / (one - none);
        let constants = (MAX_STEPS - none - loops * (one - none)) / 2;
        let whole = read(
            usize::try_from(loops).unwrap(),
            usize::try_from(constants).unwrap(),
        );
        assert_eq!(steps(&whole), MAX_STEPS);
        assert_eq!(whole.matches(&many), Ok(true));
        let more = Rule::parse(&format!("{} || true", whole.source())).unwrap();
        assert_eq!(
            more.matches(&many),
            Err(format!("it could take more than {MAX_STEPS} steps"))
        );
    }
}
