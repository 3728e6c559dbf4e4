//! Partially read objects, limited to the keys that a query selects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use async_graphql::{Number, Value};
use serde_json::value::RawValue;

use super::shape::Scalar;
use crate::server::project::for_each_value;

/// Maximum number of bytes that one query may read and return.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Maximum duration of a query.
pub(super) const MAX_TIME: Duration = Duration::from_secs(5);

/// Selected values of one object, by key, as JSON.
pub(super) type Row = BTreeMap<String, String>;

/// Remaining budget of a query.
pub(super) struct Budget {
    end: Instant,
    bytes: AtomicUsize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            end: Instant::now() + MAX_TIME,
            bytes: AtomicUsize::new(MAX_BYTES),
        }
    }

    /// Subtracts bytes from the budget; the error is for the client.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), String> {
        if Instant::now() > self.end {
            return Err(format!("query exceeds time limit of {} s", MAX_TIME.as_secs()));
        }
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .map(|_| ())
            .map_err(|_| {
                format!(
                    "query reads more than {} MiB: ask for fewer objects or fields",
                    MAX_BYTES / (1024 * 1024)
                )
            })
    }
}

/// Reads the `selected` keys of an object.
pub(super) fn row(object: &str, selected: &BTreeSet<&str>, budget: &Budget) -> Result<Row, String> {
    let mut row = Row::new();
    let (mut size, text) = (0, object);
    for_each_value(text, |key, value| {
        if let Some(key) = key.filter(|key| selected.contains(key)) {
            size += value.len();
            row.insert(key.to_owned(), value.to_owned());
        }
        Ok(())
    })
    .map_err(|_| "a stored object is not JSON".to_owned())?;
    budget.spend(size)?;
    Ok(row)
}

/// Returns the elements of a list, `None` for other values.
pub(super) fn elements(list: &str) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(list).ok()
}

/// Converts a JSON value to a GraphQL scalar; null if it does not fit.
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
