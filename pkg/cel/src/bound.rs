//! Upper bound for the steps of an evaluation.
//!
//! The bound follows the expression over the sizes of its values, so that texts and lists that grow while the expression
//! runs (`[x].map(y, y + y).map(y, y + y)`) are counted as large as they become. A step is the evaluation of a node, or
//! work on 64 bytes.

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::regex;
use super::size::{Measured, Size};
use super::walk;

/// Bytes that count as one step.
const BYTES_PER_STEP: u64 = 64;
/// Allowance for texts that functions return for numbers and times, in bytes.
const SHORT_TEXT: u64 = 512;
/// Growth of texts by functions such as quoting, and of bytes decoded to text.
const GROWTH: u64 = 8;

/// Value of a variable, for the bound.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// The variable has this JSON value.
    Json(&'a Value),
    /// The variable has some value of at most this size.
    Sized(Size),
}

/// Knowledge about a value while an expression runs.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// It is this part of a variable.
    Json(&'a Value),
    /// It has at most this size, and the evaluation refers to it without copying.
    Borrowed(Size),
    /// It has at most this size, and its parts are copied when they are selected.
    Owned(Size),
}

const SCALAR: Known<'static> = Known::Owned(Size::SCALAR);

/// Returns the maximum number of steps of an evaluation of `node` with these variables.
pub(super) fn steps<'a>(node: &'a IdedExpr, variables: &[(&'a str, Operand<'a>)]) -> u64 {
    let scope = variables.iter().map(|(name, operand)| {
        let known = match *operand {
            Operand::Json(value) => Known::Json(value),
            Operand::Sized(size) => Known::Borrowed(size),
        };
        (*name, known)
    });
    let mut bound = Bound {
        scope: scope.collect(),
        measured: HashMap::new(),
    };
    let (steps, result) = bound.visit(node);
    steps.saturating_add(touched(bound.size(result).weight))
}

fn touched(weight: u64) -> u64 {
    weight / BYTES_PER_STEP
}

struct Bound<'a> {
    /// Variables by name, the innermost last.
    scope: Vec<(&'a str, Known<'a>)>,
    /// Measured values by address, so that each is measured once.
    measured: HashMap<usize, Measured>,
}

impl<'a> Bound<'a> {
    fn measure(&mut self, value: &'a Value) -> Measured {
        let address = std::ptr::from_ref(value).addr();
        *self
            .measured
            .entry(address)
            .or_insert_with(|| Measured::of(value))
    }

    fn size(&mut self, known: Known<'a>) -> Size {
        match known {
            Known::Json(value) => self.measure(value).own,
            Known::Borrowed(size) | Known::Owned(size) => size,
        }
    }

    /// Returns the steps of a node and what is known of its value.
    fn visit(&mut self, node: &'a IdedExpr) -> (u64, Known<'a>) {
        let (steps, known) = match &node.expr {
            Expr::Literal(literal) => (0, Known::Borrowed(literal_size(literal))),
            Expr::Ident(name) => (0, self.variable(name)),
            Expr::Select(select) => {
                let (steps, operand) = self.visit(&select.operand);
                let (copied, field) = self.part(operand, Some(Key::Name(&select.field)));
                (
                    steps.saturating_add(copied),
                    if select.test { SCALAR } else { field },
                )
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::List(_) | Expr::Map(_) | Expr::Struct(_) => {
                let parts = walk::parts(node);
                let length = parts.len();
                let (steps, sizes) = self.visit_all(parts);
                let size = Size::list(sizes.into_iter(), length);
                (steps.saturating_add(touched(size.weight)), Known::Owned(size))
            }
            Expr::Unspecified => (0, SCALAR),
        };
        (steps.saturating_add(1), known)
    }

    fn visit_all(&mut self, nodes: Vec<&'a IdedExpr>) -> (u64, Vec<Size>) {
        let mut steps = 0_u64;
        let mut sizes = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (own, known) = self.visit(node);
            steps = steps.saturating_add(own);
            sizes.push(self.size(known));
        }
        (steps, sizes)
    }

    fn variable(&self, name: &str) -> Known<'a> {
        let mut scope = self.scope.iter();
        let found = match name.strip_prefix('.') {
            Some(name) => scope.find(|(known, _)| *known == name),
            None => scope.rfind(|(known, _)| *known == name),
        };
        found.map_or(SCALAR, |(_, known)| *known)
    }

    /// Returns what is known of an element or field, and the steps that a copy takes.
    fn part(&mut self, whole: Known<'a>, key: Option<Key<'a>>) -> (u64, Known<'a>) {
        match (whole, key) {
            // A field that is absent ends the evaluation of its operand.
            (Known::Json(value), Some(Key::Name(name))) => (0, value.get(name).map_or(SCALAR, Known::Json)),
            (Known::Json(value), Some(Key::Index(at))) => (0, value.get(at).map_or(SCALAR, Known::Json)),
            (Known::Json(value), None) => (0, Known::Borrowed(self.measure(value).held)),
            (Known::Borrowed(size), _) => (0, Known::Borrowed(size.part())),
            (Known::Owned(size), _) => (touched(size.weight), Known::Owned(size.part())),
        }
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr) -> (u64, Known<'a>) {
        let (range_steps, range) = self.visit(&fold.iter_range);
        let (init_steps, init) = self.visit(&fold.accu_init);
        let (length, item) = match range {
            Known::Json(value) => {
                let measured = self.measure(value);
                (measured.length, measured.visited.or(measured.held))
            }
            Known::Borrowed(size) | Known::Owned(size) => (size.length, size.part()),
        };
        let init_size = self.size(init);
        let outer = self.scope.len();
        self.scope.push((&fold.iter_var, Known::Borrowed(item)));
        if let Some(second) = &fold.iter_var2 {
            self.scope.push((second, Known::Borrowed(item)));
        }
        self.scope.push((&fold.accu_var, Known::Borrowed(init_size)));
        let (cond_steps, _) = self.visit(&fold.loop_cond);
        let (step_steps, step) = self.visit(&fold.loop_step);
        let grown = if matches!(fold.accu_init.expr, Expr::Literal(_)) {
            Size::SCALAR
        } else {
            // Expressions cannot name the accumulator: each step adds to it at most once.
            let step_size = self.size(step);
            init_size.joined(step_size.times(length))
        };
        self.scope.push((&fold.accu_var, Known::Borrowed(grown)));
        let (result_steps, result) = self.visit(&fold.result);
        let result_size = self.size(result);
        self.scope.truncate(outer);
        let copied = touched(self.size(range).weight).saturating_add(touched(result_size.weight));
        let each = cond_steps.saturating_add(step_steps).saturating_add(2);
        let steps = [range_steps, init_steps, result_steps, copied]
            .into_iter()
            .fold(length.saturating_mul(each), u64::saturating_add);
        (steps, Known::Owned(result_size))
    }

    fn call(&mut self, call: &'a CallExpr) -> (u64, Known<'a>) {
        let nodes: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        if let ("_[_]", [whole, index]) = (call.func_name.as_str(), &nodes[..]) {
            let (whole_steps, whole) = self.visit(whole);
            let (index_steps, _) = self.visit(index);
            let (copied, part) = self.part(whole, Key::of(index));
            let steps = whole_steps.saturating_add(index_steps).saturating_add(copied);
            return (steps, part);
        }
        let pattern = nodes.last().and_then(|node| literal_text(node));
        let format = nodes.first().and_then(|node| literal_text(node));
        let (steps, sizes) = self.visit_all(nodes);
        let sum = sizes.iter().copied().fold(Size::default(), Size::joined);
        let weight = |at: usize| sizes.get(at).map_or(0, |size| size.weight);
        // The largest text that each byte of the first operand can become.
        let most = sizes.iter().skip(1).map(|size| size.weight).max().unwrap_or(1);
        let product = weight(0).saturating_mul(most);
        let text = |weight: u64| Size {
            weight,
            ..Size::SCALAR
        };
        let (work, size) = match call.func_name.as_str() {
            "_?_:_" => (0, sizes.iter().skip(1).copied().fold(Size::SCALAR, Size::or)),
            "_&&_" | "_||_" | "!_" | "@not_strictly_false" | "-_" | "_-_" | "_*_" | "_/_" | "_%_" => {
                (0, Size::SCALAR)
            }
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                (weight(0).min(weight(1)).saturating_mul(2), Size::SCALAR)
            }
            "@in" | "size" | "contains" | "startsWith" | "endsWith" => (sum.weight, Size::SCALAR),
            "_+_" => (sum.weight, sum),
            "matches" => {
                let effort = pattern.map_or(regex::MOST, regex::effort);
                let matching = weight(0).saturating_mul(effort.div_ceil(16));
                (
                    matching.saturating_add(effort.saturating_mul(BYTES_PER_STEP)),
                    Size::SCALAR,
                )
            }
            "indexOf" | "lastIndexOf" => (product, Size::SCALAR),
            "replace" | "join" => (product, text(product)),
            "split" => {
                let parts = weight(0).saturating_mul(Size::SCALAR.weight);
                (
                    parts,
                    Size {
                        length: weight(0),
                        ..text(parts)
                    },
                )
            }
            "format" => {
                let repeated = format.map_or(u64::MAX, regex::effort);
                let formatted = product.saturating_mul(repeated);
                (formatted, text(formatted))
            }
            _ => {
                let weight = sum.weight.saturating_mul(GROWTH).saturating_add(SHORT_TEXT);
                let length = sum.weight;
                (
                    sum.weight,
                    Size {
                        weight,
                        length,
                        ..sum
                    },
                )
            }
        };
        (steps.saturating_add(touched(work)), Known::Owned(size))
    }
}

/// Constant key of an element or field.
enum Key<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Key<'a> {
    fn of(node: &'a IdedExpr) -> Option<Self> {
        match &node.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(Self::Name(text.inner())),
            Expr::Literal(LiteralValue::Int(at)) => usize::try_from(*at.inner()).ok().map(Self::Index),
            _ => None,
        }
    }
}

fn literal_text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn literal_size(literal: &LiteralValue) -> Size {
    match literal {
        LiteralValue::String(text) => Size::text(text.inner().len()),
        LiteralValue::Bytes(bytes) => Size::text(bytes.inner().len()),
        _ => Size::SCALAR,
    }
}
