//! Traversal and cost of the tree of an expression.

use cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// Variable, field or function that an expression mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mention<'a> {
    /// The value of a field, or of a variable.
    Field(&'a str),
    /// Test for the presence of a field: `has(a.field)`.
    Presence(&'a str),
    /// A function or operator (`_==_`, `_+_`, `@in`), with the names of the operands that are plain fields or
    /// variables.
    Call(&'a str, Vec<&'a str>),
}

/// Returns the child nodes of a node.
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

/// Returns true if `test` is true for any node.
pub(super) fn any(node: &IdedExpr, test: &dyn Fn(&IdedExpr) -> bool) -> bool {
    test(node) || parts(node).into_iter().any(|part| any(part, test))
}

pub(super) fn mentions(node: &IdedExpr) -> Vec<Mention<'_>> {
    let mut out = Vec::new();
    let mut todo = vec![node];
    while let Some(node) = todo.pop() {
        match &node.expr {
            Expr::Select(select) if select.test => out.push(Mention::Presence(&select.field)),
            Expr::Select(select) => out.push(Mention::Field(&select.field)),
            Expr::Ident(name) => out.push(Mention::Field(name)),
            Expr::Call(call) => {
                let operands = call.target.as_deref().into_iter().chain(&call.args);
                out.push(Mention::Call(
                    &call.func_name,
                    operands.filter_map(plain).collect(),
                ));
            }
            _ => {}
        }
        todo.extend(parts(node));
    }
    out
}

/// Returns the name of a plain field or variable.
fn plain(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Select(select) if !select.test => Some(&select.field),
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}

/// Returns the length of the longest list or map literal of an expression.
pub(super) fn longest(node: &IdedExpr) -> usize {
    let parts = parts(node);
    let own = match &node.expr {
        Expr::List(_) | Expr::Map(_) => parts.len(),
        _ => 0,
    };
    parts.into_iter().map(longest).max().unwrap_or(0).max(own)
}

pub(super) fn is_small(node: &IdedExpr, depth: usize, nodes: usize) -> bool {
    fn count(node: &IdedExpr, depth: usize, left: &mut usize) -> bool {
        if depth == 0 || *left == 0 {
            return false;
        }
        *left -= 1;
        parts(node).into_iter().all(|part| count(part, depth - 1, left))
    }
    let mut left = nodes;
    count(node, depth, &mut left)
}

/// Returns the maximum number of steps of a node if no list is longer than `widest`.
pub(super) fn cost(node: &IdedExpr, widest: u64) -> u64 {
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

/// Returns the maximum number of elements of a node in a loop.
fn length(node: &IdedExpr, widest: u64) -> u64 {
    match &node.expr {
        Expr::List(list) => list.elements.len() as u64,
        Expr::Map(map) => map.entries.len() as u64,
        // The result of a macro has at most as many elements as its input.
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
