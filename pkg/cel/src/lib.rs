//! Untrusted CEL expressions with bounded cost.
//!
//! The `cel` library does not limit evaluation. [`Expression`] therefore limits length and depth at parsing, and
//! computes the maximum number of steps for the size of the variables. The caller supplies variables and functions.
//! [`Predicate`] is an expression over one object with limits of its own.

mod bound;
mod json;
mod matches;
mod predicate;
mod re2;
mod regex;
mod size;
mod walk;

use std::sync::Arc;

use cel::Context;
use cel::common::ast::{Expr, IdedExpr};
use cel::parser::PrattParser;
pub use cel::{ExecutionError, Value};

pub use bound::Operand;
pub use json::{environment, standard_environment, value};
pub use predicate::Predicate;
pub use re2::rust_pattern;
pub use size::Size;
pub use walk::Mention;

/// Maximum length of an expression, in bytes.
pub const BYTES: usize = 8 * 1024;
/// Maximum nesting while parsing.
const PARSE_DEPTH: u16 = 32;
/// Maximum depth of the tree.
const DEPTH: usize = 96;
/// Maximum number of nodes, after the expansion of macros.
const NODES: usize = 4096;

/// Parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    source: String,
    tree: Arc<IdedExpr>,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The reason why the expression is refused, as one phrase.
    pub fn parse(source: &str) -> Result<Self, String> {
        if source.len() > BYTES {
            return Err(format!("it is longer than {BYTES} bytes"));
        }
        let tree = PrattParser::new()
            .max_recursion_depth(PARSE_DEPTH)
            .max_expression_node_count(NODES)
            .parse(source)
            .map_err(|errors| {
                let first = errors.errors.first();
                first.map_or_else(|| "it cannot be parsed".to_owned(), |error| error.msg.clone())
            })?;
        if !walk::is_small(&tree, DEPTH, NODES) {
            return Err(format!(
                "it has more than {NODES} parts, or is nested more than {DEPTH} deep"
            ));
        }
        Ok(Self {
            source: source.to_owned(),
            tree: Arc::new(tree),
        })
    }

    /// Returns the expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the maximum number of steps of an evaluation with these variables. A step is the evaluation of a node, or
    /// work on 64 bytes.
    pub fn steps(&self, variables: &[(&str, Operand<'_>)]) -> u64 {
        bound::steps(&self.tree, variables)
    }

    /// Returns the variables, fields and functions that the expression mentions, one for each node, outermost first.
    pub fn mentions(&self) -> Vec<Mention<'_>> {
        walk::mentions(&self.tree)
    }

    /// Returns true if the expression mentions this variable anywhere.
    pub fn names(&self, variable: &str) -> bool {
        walk::any(
            &self.tree,
            &|node| matches!(&node.expr, Expr::Ident(name) if name == variable),
        )
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// The library's error if the expression has no value.
    pub fn evaluate(&self, context: &Context<'_, '_>) -> Result<Value, ExecutionError> {
        context.resolve(&self.tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_expressions_are_refused() {
        let error = |source: &str| Expression::parse(source).unwrap_err();
        assert!(error(&"a".repeat(BYTES + 1)).contains("longer"));
        assert!(Expression::parse(&format!("{}1{}", "[".repeat(500), "]".repeat(500))).is_err());
        assert!(Expression::parse("self.a <").is_err());
    }

    #[test]
    fn loops_cost_their_number_of_elements() {
        let steps = |source: &str, length: usize| {
            let object = serde_json::json!({"a": 1, "l": vec![1; length]});
            Expression::parse(source)
                .unwrap()
                .steps(&[("self", Operand::Json(&object))])
        };
        assert!(steps("self.a == 1", 100_000) < 10);
        assert!(steps("self.l.all(x, x > 1)", 1000) > 1000);
        assert!(steps("self.l.all(x, self.l.exists(y, x == y))", 1000) > 1_000_000);
        assert!(steps("[1, 2, 3].all(x, x > 0)", 0) > 3);
    }

    #[test]
    fn values_that_grow_cost_what_they_become() {
        let steps = |source: &str| Expression::parse(source).unwrap().steps(&[]);
        let doubled = |times: usize| format!("['a']{}[0].size()", ".map(x, x + x)".repeat(times));
        assert!(steps(&doubled(3)) < 1_000);
        assert!(steps(&doubled(30)) > 1 << 24);
        let lists = format!("[[1]]{}[0].all(y, true)", ".map(x, x + x)".repeat(30));
        assert!(steps(&lists) > 1 << 24);
        assert!(steps("'a'.replace('', 'b').replace('', 'c')") < 100_000);
        let replaced = format!("'aaaaaaaa'{}", ".replace('a', 'aaaaaaaa')".repeat(10));
        assert!(steps(&replaced) > 1 << 24);
    }

    #[test]
    fn names_and_mentions() {
        let rule = Expression::parse("has(self.when) && self.names == oldSelf.names").unwrap();
        assert!(rule.names("oldSelf") && !rule.names("names"));
        let mentions = rule.mentions();
        assert!(mentions.contains(&Mention::Presence("when")));
        assert!(mentions.contains(&Mention::Field("names")));
        assert!(mentions.iter().any(
            |mention| matches!(mention, Mention::Call(name, operands) if *name == "_==_" && operands == &["names", "names"])
        ));
    }
}
