//! Cost of a document, counted before it is allocated.

use serde_json::Value;

use crate::{Limits, YamlError};

/// Memory of a value in a list, in bytes: the value, and the spare capacity of a growing list.
const VALUE: usize = 2 * size_of::<Value>();
/// Memory of the first items of a list, in bytes: a list starts with capacity for four.
const LIST: usize = 4 * size_of::<Value>();
/// Memory of an object's first member, in bytes: a B-tree node has capacity for eleven.
const FIRST_MEMBER: usize = 11 * MEMBER + 16;
/// Memory of a member, in bytes.
const MEMBER: usize = size_of::<String>() + size_of::<Value>();

/// Overhead of the allocator for a text, in bytes.
const ALLOCATION: usize = 16;

/// Returns the memory below a value, in bytes. The depth of the value was limited when it was parsed.
pub fn memory(value: &Value) -> usize {
    let text = |text: &String| match text.capacity() {
        0 => 0,
        bytes => bytes.saturating_add(ALLOCATION),
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(value) => text(value),
        Value::Array(items) => {
            let room = items.capacity().saturating_mul(size_of::<Value>());
            items.iter().map(memory).fold(room, usize::saturating_add)
        }
        Value::Object(members) => {
            let room = members_memory(members.len());
            let members = members.iter().map(|(key, value)| text(key) + memory(value));
            members.fold(room, usize::saturating_add)
        }
    }
}

/// Returns the memory of an object's tree with so many members, in bytes.
fn members_memory(count: usize) -> usize {
    match count {
        0 => 0,
        1..=11 => FIRST_MEMBER,
        _ => count.saturating_mul(2 * MEMBER),
    }
}

/// Number of brackets around a value at which [`json_memory`] stops: the JSON reader refuses fewer.
const MAX_OPEN: usize = 256;

/// Estimates the memory of the values of a JSON text before they are built, in bytes. The text may be invalid.
pub(crate) fn json_memory(text: &str) -> usize {
    /// Collection around the current value.
    enum Open {
        List,
        Object { members: usize },
    }
    let (mut memory, mut previous) = (text.len(), 0);
    let (mut quoted, mut escaped) = (false, false);
    let mut open: Vec<Open> = Vec::new();
    for byte in text.bytes() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        if byte.is_ascii_whitespace() {
            continue;
        }
        if byte == b'"' {
            quoted = true;
            memory = memory.saturating_add(ALLOCATION);
        }
        match (previous, byte) {
            (b'[', first) if first != b']' => memory = memory.saturating_add(LIST),
            (b'{', first) if first != b'}' => memory = memory.saturating_add(FIRST_MEMBER),
            _ => {}
        }
        match byte {
            b'[' => open.push(Open::List),
            b'{' => open.push(Open::Object { members: 1 }),
            b']' | b'}' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Object { members }) => {
                    let before = members_memory(*members);
                    *members += 1;
                    memory = memory.saturating_add(members_memory(*members).saturating_sub(before));
                }
                _ => memory = memory.saturating_add(VALUE),
            },
            _ => {}
        }
        if open.len() > MAX_OPEN {
            break;
        }
        previous = byte;
    }
    memory
}

/// Cost of a value with every alias expanded.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Memory in bytes.
    pub(crate) bytes: usize,
    /// Levels of collections.
    pub(crate) height: usize,
    /// Nodes as Go's reader counts them.
    nodes: u64,
}

impl Cost {
    /// Adds the cost of an item.
    pub(crate) fn add(&mut self, item: Self) {
        self.bytes = self.bytes.saturating_add(item.bytes);
        self.height = self.height.max(item.height);
        self.nodes = self.nodes.saturating_add(item.nodes);
    }

    /// Returns the cost of a collection with these items.
    pub(crate) fn higher(self) -> Self {
        Self {
            height: self.height + 1,
            ..self
        }
    }
}

/// Remaining memory, depth and nodes of a document.
pub(crate) struct Budget {
    limits: Limits,
    /// Memory used so far, in bytes.
    used: usize,
    /// Nodes so far, and the nodes among them that aliases repeat.
    nodes: u64,
    repeated: u64,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: 0,
            nodes: 0,
            repeated: 0,
        }
    }

    /// Charges a scalar of `length` bytes.
    pub(crate) fn scalar(&mut self, length: usize) -> Result<Cost, YamlError> {
        self.node(VALUE.saturating_add(length))
    }

    /// Charges an empty list or object.
    pub(crate) fn collection(&mut self, list: bool) -> Result<Cost, YamlError> {
        self.node(if list { VALUE + LIST } else { VALUE })
    }

    /// Charges a member of an object, whose key and value are already charged.
    pub(crate) fn member(&mut self, first: bool) -> Result<Cost, YamlError> {
        // Splitting leaves half of a B-tree node empty.
        let bytes = if first { FIRST_MEMBER } else { 2 * MEMBER };
        self.memory(bytes)?;
        Ok(Cost {
            bytes,
            ..Cost::default()
        })
    }

    /// Charges a second copy of a value, kept for its anchor.
    pub(crate) fn copy(&mut self, cost: Cost) -> Result<(), YamlError> {
        self.memory(cost.bytes)
    }

    /// Charges the repetition of a value and returns its cost.
    pub(crate) fn alias(&mut self, cost: Cost) -> Result<Cost, YamlError> {
        self.repeated = self.repeated.saturating_add(cost.nodes);
        self.nodes = self.nodes.saturating_add(cost.nodes);
        let alias = self.node(cost.bytes)?;
        Ok(Cost {
            nodes: cost.nodes.saturating_add(alias.nodes),
            ..cost
        })
    }

    /// Refuses a value that is nested too deeply.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<(), YamlError> {
        let limit = self.limits.depth();
        if depth > limit {
            return Err(YamlError::TooDeep { limit });
        }
        Ok(())
    }

    fn node(&mut self, bytes: usize) -> Result<Cost, YamlError> {
        self.nodes = self.nodes.saturating_add(1);
        if excessive(self.repeated, self.nodes) {
            return Err(YamlError::problem("document contains excessive aliasing"));
        }
        self.memory(bytes)?;
        Ok(Cost {
            bytes,
            height: 0,
            nodes: 1,
        })
    }

    fn memory(&mut self, bytes: usize) -> Result<(), YamlError> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.limits.max_memory {
            let limit = self.limits.max_memory;
            return Err(YamlError::TooCostly { limit });
        }
        Ok(())
    }
}

/// Returns true if aliases repeat too large a share of the nodes: more than 99 % in a document of up to 400,000 nodes,
/// falling to 10 % at 4,000,000. The rule is that of Go's reader.
fn excessive(repeated: u64, nodes: u64) -> bool {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    if repeated <= 100 || nodes <= 1000 {
        return false;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of nodes stay far below 2^53")]
    let (repeated, nodes) = (repeated as f64, nodes as f64);
    let allowed = 0.99 - 0.89 * ((nodes.clamp(LOW, HIGH) - LOW) / (HIGH - LOW));
    repeated / nodes > allowed
}

#[cfg(test)]
mod tests {
    use super::{json_memory, memory};

    /// Tests that the estimate covers the values, and exceeds them by little more than the capacity that lists may have.
    #[test]
    fn the_estimate_of_a_json_text_covers_its_values() {
        let members: Vec<String> = (0..1000)
            .map(|number| format!("\"k{number}\": {number}"))
            .collect();
        for text in [
            format!("[{}]", vec!["[0]"; 10_000].join(",")),
            format!("[{}]", vec!["{\"a\": 0}"; 1_000].join(" , ")),
            format!("[{}]", vec!["[]"; 1_000].join(",")),
            format!("[{}]", vec!["{}"; 1_000].join(",")),
            format!("[{}]", vec!["0"; 100_000].join(",")),
            format!("{{{}}}", members.join(",")),
            format!("\"{}\"", "\\u0041".repeat(1000)),
            "{\"a\": [\"]\", \"}\", {\"[{\": \"\\\"[{\"}]}".to_owned(),
        ] {
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let (estimate, taken) = (json_memory(&text), memory(&value));
            assert!(estimate >= taken, "{estimate} < {taken}: {}", &text[..30]);
            assert!(
                estimate <= 2 * taken + 2 * text.len(),
                "{estimate} > {taken}: {}",
                &text[..30]
            );
        }
        assert!(json_memory(&"[".repeat(1_000_000)) > 1_000_000);
    }
}
