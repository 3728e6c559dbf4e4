//! Partially read objects, limited to the keys that a query selects.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use async_graphql::{Number, Value};
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::shape::Scalar;
use crate::server::project::for_each_value;

/// Maximum number of bytes of the values that one query selects and returns, and of its answer. What it reads beside them costs time
/// only: one object, of up to 16 MiB, is in memory at once.
pub(super) const MAX_BYTES: u32 = 32 * 1024 * 1024;
/// Maximum duration of a query.
pub(super) const MAX_TIME: Duration = Duration::from_secs(5);

/// Memory of an element of a list while its query runs, besides its text, in bytes. The library makes a future of each
/// before it resolves the first.
pub(super) const ELEMENT: usize = 1024;
/// Memory of a field of an element, besides its text, in bytes.
pub(super) const FIELD: usize = 256;
/// Memory of a value of introspection, in bytes: most are fields, and some are elements.
pub(super) const INTROSPECTED: usize = 512;

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
            bytes: AtomicUsize::new(MAX_BYTES as usize),
        }
    }

    /// Subtracts bytes from the budget; the error is for the client.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), String> {
        if Instant::now() > self.end {
            return Err(format!("query exceeds time limit of {} s", MAX_TIME.as_secs()));
        }
        self.take(bytes)
    }

    /// Subtracts bytes without looking at the clock, which takes longer than a small value.
    fn take(&self, bytes: usize) -> Result<(), String> {
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

/// Returns the elements of a list, `None` for other values. Each costs `cost` bytes of the budget before it is kept.
pub(super) fn elements<'a>(
    list: &'a str,
    cost: usize,
    budget: &Budget,
) -> Result<Option<Vec<&'a RawValue>>, String> {
    budget.spend(0)?;
    let mut elements = Elements {
        found: Vec::new(),
        cost,
        budget,
        refusal: None,
    };
    let read = serde_json::Deserializer::from_str(list).deserialize_seq(&mut elements);
    match elements.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(read.ok().map(|()| elements.found)),
    }
}

struct Elements<'a, 'b> {
    found: Vec<&'a RawValue>,
    cost: usize,
    budget: &'b Budget,
    /// Error of the budget, for the client.
    refusal: Option<String>,
}

impl<'de> Visitor<'de> for &mut Elements<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.budget.take(self.cost).map_err(|refusal| {
                self.refusal = Some(refusal);
                A::Error::custom("more than the budget")
            })?;
            self.found.push(element);
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_cost_memory_besides_their_text() {
        let texts = |list: &str, budget: &Budget| {
            let found = elements(list, ELEMENT, budget)?;
            Ok::<_, String>(found.map(|found| {
                found
                    .iter()
                    .map(|value| value.get().to_owned())
                    .collect::<Vec<_>>()
            }))
        };
        let budget = Budget::new();
        assert_eq!(
            texts(r#"[1,{"a":[2]},"x"]"#, &budget),
            Ok(Some(["1", r#"{"a":[2]}"#, "\"x\""].map(str::to_owned).to_vec()))
        );
        assert_eq!(texts("{}", &budget), Ok(None));
        assert_eq!(
            budget.bytes.load(Ordering::Relaxed),
            MAX_BYTES as usize - 3 * ELEMENT
        );
        let list = format!("[{}0]", "0,".repeat(1_000_000));
        let refusal = texts(&list, &budget).unwrap_err();
        assert!(refusal.starts_with("query reads more than 32 MiB"), "{refusal}");
    }
}
