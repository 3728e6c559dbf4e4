//! CEL expressions over a bundle's properties, bounded before they run.
//!
//! OLM's environment: `properties`, a list of `{type, value}`, and `semver_compare(a, b)`, which is negative, zero or
//! positive. The library has no limits of its own for evaluation, so that an expression is measured first: its
//! length, its depth, and how many steps its loops can take on these properties.

use std::collections::HashMap;
use std::sync::Arc;

use ::cel::common::ast::{EntryExpr, Expr, IdedExpr};
use ::cel::objects::Key;
use ::cel::parser::PrattParser;
use ::cel::{Context, ExecutionError, Value as Cel};
use olm_version::parse_version;
use serde_json::Value;

/// Longest expression, in bytes.
const BYTES: usize = 8 * 1024;
/// Deepest nesting while parsing.
const PARSE_DEPTH: u16 = 32;
/// Deepest tree.
const DEPTH: usize = 96;
/// Most nodes, macros expanded.
const NODES: usize = 4096;
/// Most steps of one evaluation.
const STEPS: u64 = 200_000;

/// An expression that can be evaluated.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    source: String,
    tree: Arc<IdedExpr>,
}

impl Rule {
    /// Reads an expression.
    ///
    /// Errors: why it cannot be used, as one phrase.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        if source.len() > BYTES {
            return Err(format!("it is longer than {BYTES} bytes"));
        }
        let tree = PrattParser::new()
            .max_recursion_depth(PARSE_DEPTH)
            .max_expression_node_count(NODES)
            .parse(source)
            .map_err(|errors| {
                let first = errors.errors.first();
                first.map_or_else(|| "it does not read".to_owned(), |error| error.msg.clone())
            })?;
        let mut nodes = 0;
        if !is_small(&tree, DEPTH, &mut nodes) {
            return Err(format!(
                "it has more than {NODES} parts, or is nested more than {DEPTH} deep"
            ));
        }
        Ok(Self {
            source: source.to_owned(),
            tree: Arc::new(tree),
        })
    }

    /// The expression as written.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether it is true of a bundle with these properties.
    ///
    /// Errors: why it has no answer, as one phrase.
    pub(super) fn holds(&self, properties: &[Value]) -> Result<bool, String> {
        let widest = properties
            .iter()
            .map(widest)
            .max()
            .unwrap_or(0)
            .max(properties.len());
        // A loop's variable may be a list of the expression's own.
        let widest = widest.max(longest(&self.tree));
        if cost(&self.tree, widest as u64) > STEPS {
            return Err(format!("it could take more than {STEPS} steps"));
        }
        let mut context = Context::default();
        let list: Vec<Cel> = properties.iter().map(value).collect();
        context.add_variable_from_value("properties", list);
        context
            .add_function("semver_compare", semver_compare)
            .map_err(|error| error.to_string())?;
        match context.resolve(&self.tree) {
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

fn value(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(float)) => Cel::Float(float),
            (None, None) => Cel::Null,
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(list) => Cel::List(Arc::new(list.iter().map(value).collect())),
        Value::Object(map) => {
            let map: HashMap<Key, Cel> = map
                .iter()
                .map(|(key, field)| (Key::from(key.clone()), value(field)))
                .collect();
            Cel::from(map)
        }
    }
}

/// The length of the longest list or map in a value.
fn widest(json: &Value) -> usize {
    match json {
        Value::Array(list) => list.iter().map(widest).max().unwrap_or(0).max(list.len()),
        Value::Object(map) => map.values().map(widest).max().unwrap_or(0).max(map.len()),
        _ => 0,
    }
}

/// The parts of a node.
fn parts(node: &IdedExpr) -> Vec<&IdedExpr> {
    match &node.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(fold) => vec![
            &fold.iter_range,
            &fold.accu_init,
            &fold.loop_cond,
            &fold.loop_step,
            &fold.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| entry_parts(&entry.expr))
            .collect(),
        Expr::Struct(fields) => fields
            .entries
            .iter()
            .flat_map(|entry| entry_parts(&entry.expr))
            .collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// The length of the longest list or map that an expression writes out.
fn longest(node: &IdedExpr) -> usize {
    let parts = parts(node);
    let own = match &node.expr {
        Expr::List(_) | Expr::Map(_) => parts.len(),
        _ => 0,
    };
    parts.into_iter().map(longest).max().unwrap_or(0).max(own)
}

fn is_small(node: &IdedExpr, depth: usize, nodes: &mut usize) -> bool {
    *nodes += 1;
    *nodes <= NODES
        && depth > 0
        && parts(node)
            .into_iter()
            .all(|part| is_small(part, depth - 1, nodes))
}

/// The most steps that a node can take, where no list of the properties is longer than `widest`.
fn cost(node: &IdedExpr, widest: u64) -> u64 {
    let Expr::Comprehension(fold) = &node.expr else {
        let parts = parts(node).into_iter().map(|part| cost(part, widest));
        return parts.fold(1, u64::saturating_add);
    };
    let step = cost(&fold.loop_cond, widest).saturating_add(cost(&fold.loop_step, widest));
    [&fold.iter_range, &fold.accu_init, &fold.result]
        .into_iter()
        .map(|part| cost(part, widest))
        .fold(
            length(&fold.iter_range, widest).saturating_mul(step),
            u64::saturating_add,
        )
}

/// The most elements that a node can have when it is looped over.
fn length(node: &IdedExpr, widest: u64) -> u64 {
    match &node.expr {
        Expr::List(list) => list.elements.len() as u64,
        Expr::Map(map) => map.entries.len() as u64,
        // What macros make is as long as what they are made from, at most.
        Expr::Comprehension(fold) => length(&fold.iter_range, widest),
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .map(|part| length(part, widest))
            .fold(0, u64::saturating_add)
            .max(widest),
        _ => widest,
    }
}
