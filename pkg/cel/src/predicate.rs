//! Expressions that say yes or no about an object, which they call `self`.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use cel::{Context, Value as Cel};
use serde_json::Value;

use super::bound::Operand;
use super::{Expression, json, walk};

/// Name of the object.
const OBJECT: &str = "self";
/// Maximum number of steps of an evaluation.
const STEPS: u64 = 100_000;
/// Names of types, which expressions compare with `type(self.x)`.
const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];
/// Functions that expressions may call, besides operators and macros.
#[rustfmt::skip]
const FUNCTIONS: [&str; 34] = [
    "bool", "bytes", "charAt", "contains", "double", "duration", "dyn", "endsWith", "getDate", "getDayOfMonth",
    "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth",
    "getSeconds", "indexOf", "int", "join", "lastIndexOf", "lowerAscii", "matches", "replace", "size", "split",
    "startsWith", "string", "substring", "timestamp", "trim", "type", "upperAscii",
];
/// Functions that never return a boolean.
#[rustfmt::skip]
const OTHER_VALUES: [&str; 17] = [
    "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "bytes", "double", "duration", "int", "join", "size", "split", "string",
    "timestamp", "type", "uint",
];

/// Condition on an object, as an expression over `self`. Pure: there is no clock, and no other input.
#[derive(Clone, Debug)]
pub struct Predicate(Expression);

impl Predicate {
    /// Parses an expression, and checks what can be checked without an object.
    ///
    /// # Errors
    /// The reason why the expression is refused, as one phrase: it cannot be parsed, uses an unknown variable or function,
    /// cannot have a boolean value, or is too costly for any object.
    pub fn parse(source: &str) -> Result<Self, String> {
        let expression = Expression::parse(source)?;
        let mut scope = vec![OBJECT];
        scope.extend(TYPES);
        if let Some(name) = walk::unbound(&expression.tree, &mut scope) {
            return Err(format!(
                "variable {name:?} is unknown; the object is called {OBJECT}"
            ));
        }
        if let Some(name) = walk::function(&expression.tree, &|name| is_known(name)) {
            return Err(format!("function {name:?} is unknown"));
        }
        if is_other_value(&expression.tree) {
            return Err("its value is not a boolean".to_owned());
        }
        let predicate = Self(expression);
        predicate.check_cost(&Value::Null)?;
        Ok(predicate)
    }

    /// Returns the expression as written.
    #[must_use]
    pub fn source(&self) -> &str {
        self.0.source()
    }

    /// Evaluates the expression on an object.
    ///
    /// # Errors
    /// The reason why there is no answer, as one phrase: a field is absent, the value is not a boolean, or the evaluation
    /// could be too costly on this object.
    pub fn holds(&self, object: &Value) -> Result<bool, String> {
        self.check_cost(object)?;
        let mut context = Context::with_env(json::environment());
        context.add_variable_from_value(OBJECT, json::value(object));
        match self.0.evaluate(&context) {
            Ok(Cel::Bool(answer)) => Ok(answer),
            Ok(_) => Err("its value is not a boolean".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn check_cost(&self, object: &Value) -> Result<(), String> {
        if self.0.steps(&[(OBJECT, Operand::Json(object))]) > STEPS {
            return Err(format!("it could take more than {STEPS} steps"));
        }
        Ok(())
    }
}

fn is_known(name: &str) -> bool {
    // Operators and the helpers of macros are no words.
    name.starts_with(['_', '!', '-', '@']) || name == "uint" || FUNCTIONS.contains(&name)
}

/// Returns true if the value is certainly not a boolean.
fn is_other_value(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Literal(literal) => !matches!(literal, LiteralValue::Boolean(_)),
        Expr::List(_) | Expr::Map(_) => true,
        Expr::Call(call) => OTHER_VALUES.contains(&call.func_name.as_str()),
        // `map` and `filter` start with an empty list.
        Expr::Comprehension(fold) => matches!(fold.accu_init.expr, Expr::List(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(source: &str, object: &Value) -> Result<bool, String> {
        Predicate::parse(source)?.holds(object)
    }

    #[test]
    fn objects_are_tested() {
        let route = json!({"status": {"ingress": [{"conditions": [{"type": "Ready", "status": "True"}]}]}});
        let ready =
            r#"self.status.ingress.all(i, i.conditions.exists(c, c.type == "Ready" && c.status == "True"))"#;
        assert_eq!(holds(ready, &route), Ok(true));
        assert_eq!(
            holds("has(self.status) && size(self.status.ingress) == 2", &route),
            Ok(false)
        );
        assert_eq!(
            holds("self.status['ingress'][0].conditions.size() > 0", &route),
            Ok(true)
        );
        assert_eq!(
            holds(
                "type(self.status) == map && 'READY'.lowerAscii() == 'ready'",
                &route
            ),
            Ok(true)
        );
        assert_eq!(holds("self.ready", &json!({"ready": true})), Ok(true));
    }

    #[test]
    fn wrong_expressions_are_refused() {
        for (source, why) in [
            ("self.a <", "syntax error"),
            (
                "object.a == 1",
                "variable \"object\" is unknown; the object is called self",
            ),
            (
                "self.l.all(x, y == 1)",
                "variable \"y\" is unknown; the object is called self",
            ),
            ("self.a.sum() == 1", "function \"sum\" is unknown"),
            (
                "'%.2000000000f'.format([1.0]) == ''",
                "function \"format\" is unknown",
            ),
            ("self.a + 1", "its value is not a boolean"),
            ("self.l.map(x, x)", "its value is not a boolean"),
            ("'yes'", "its value is not a boolean"),
            (
                "'a'.matches('(a{999}){999}')",
                "it could take more than 100000 steps",
            ),
        ] {
            let refused = Predicate::parse(source).unwrap_err();
            assert!(refused.to_lowercase().contains(why), "{source}: {refused}");
        }
        let doubled = format!("['a']{}[0] == ''", ".map(x, x + x)".repeat(30));
        assert!(Predicate::parse(&doubled).is_err());
    }

    #[test]
    fn an_object_without_the_field_has_no_answer() {
        assert!(
            holds("self.status.ready", &json!({}))
                .unwrap_err()
                .contains("status")
        );
        assert_eq!(
            holds("self.a", &json!({"a": 1})).unwrap_err(),
            "its value is not a boolean"
        );
        assert!(holds("self.a / 0 == 1", &json!({"a": 1})).is_err());
    }

    #[test]
    fn large_objects_are_bounded() {
        let list: Vec<usize> = (0..2_000).collect();
        let object = json!({"l": list, "small": [1]});
        assert_eq!(holds("self.l.exists(x, x == 5)", &object), Ok(true));
        assert_eq!(
            holds("self.small.exists(x, self.small.exists(y, x == y))", &object),
            Ok(true)
        );
        let nested = holds("self.l.exists(x, self.l.exists(y, x + y == -1))", &object);
        assert!(nested.unwrap_err().contains("more than 100000 steps"));
    }
}
