//! Traversal of the tree of an expression. Its cost is in `bound`.

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
pub(super) fn parts(node: &IdedExpr) -> Vec<&IdedExpr> {
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

/// Returns a function or operator that is not known.
pub(super) fn function<'a>(node: &'a IdedExpr, known: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    if let Expr::Call(call) = &node.expr
        && !known(&call.func_name)
    {
        return Some(&call.func_name);
    }
    parts(node).into_iter().find_map(|part| function(part, known))
}

/// Returns a variable that is neither in scope nor that of a loop.
pub(super) fn unbound<'a>(node: &'a IdedExpr, scope: &mut Vec<&'a str>) -> Option<&'a str> {
    match &node.expr {
        Expr::Ident(name) => {
            let plain = name.strip_prefix('.').unwrap_or(name);
            (!scope.contains(&plain)).then_some(plain)
        }
        Expr::Comprehension(fold) => {
            let outside = [&fold.iter_range, &fold.accu_init];
            let found = outside.into_iter().find_map(|part| unbound(part, scope));
            let outer = scope.len();
            scope.extend([fold.iter_var.as_str(), &fold.accu_var]);
            scope.extend(fold.iter_var2.as_deref());
            let inside = [&fold.loop_cond, &fold.loop_step, &fold.result];
            let found = found.or_else(|| inside.into_iter().find_map(|part| unbound(part, scope)));
            scope.truncate(outer);
            found
        }
        _ => parts(node).into_iter().find_map(|part| unbound(part, scope)),
    }
}
