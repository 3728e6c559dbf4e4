//! Objects as far as a query asks for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use async_graphql::{Number, Value};
use serde_json::value::RawValue;

use super::shape::Scalar;
use crate::server::project::parts;

/// Most bytes that one query may read and answer.
const BYTES: usize = 32 * 1024 * 1024;
/// How long a query may take.
pub(super) const TIME: Duration = Duration::from_secs(5);

/// The values of one object that a query asks for, by key, as JSON.
pub(super) type Row = BTreeMap<String, String>;

/// What is left to a query.
pub(super) struct Budget {
    end: Instant,
    bytes: AtomicUsize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            end: Instant::now() + TIME,
            bytes: AtomicUsize::new(BYTES),
        }
    }

    /// Takes bytes of it; the error is for the client.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), String> {
        if Instant::now() > self.end {
            return Err(format!("query exceeds time limit of {} s", TIME.as_secs()));
        }
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .map(|_| ())
            .map_err(|_| {
                format!(
                    "query reads more than {} MiB: ask for fewer objects or fields",
                    BYTES / (1024 * 1024)
                )
            })
    }
}

/// Reads the `wanted` keys of an object.
pub(super) fn row(object: &str, wanted: &BTreeSet<&str>, budget: &Budget) -> Result<Row, String> {
    let mut row = Row::new();
    let (mut size, text) = (0, object);
    parts(text, |key, value| {
        if let Some(key) = key.filter(|key| wanted.contains(key)) {
            size += value.len();
            row.insert(key.to_owned(), value.to_owned());
        }
        Ok(())
    })
    .map_err(|_| "a stored object is not JSON".to_owned())?;
    budget.spend(size)?;
    Ok(row)
}

/// The elements of a list; none when it is no list.
pub(super) fn elements(list: &str) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(list).ok()
}

/// A JSON value as a scalar of GraphQL; null when it does not fit.
pub(super) fn scalar(json: &str, scalar: Scalar) -> Value {
    match (scalar, json.as_bytes().first()) {
        (_, None | Some(b'n')) => Value::Null,
        (Scalar::String, Some(b'"')) => serde_json::from_str(json).map_or(Value::Null, Value::String),
        (Scalar::String, Some(_)) => Value::String(json.to_owned()),
        (Scalar::Boolean, Some(_)) => serde_json::from_str(json).map_or(Value::Null, Value::Boolean),
        (Scalar::Int | Scalar::Float, Some(_)) => {
            serde_json::from_str::<Number>(json).map_or(Value::Null, Value::Number)
        }
    }
}
