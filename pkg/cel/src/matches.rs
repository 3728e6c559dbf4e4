//! The function `matches`, which compiles each pattern once.
//!
//! The library compiles a pattern at every call, and compiling takes a thousand times as long as matching. A rule of a CRD matches
//! the same few patterns for every object and every list element.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::types::{CelBool, CelString};
use cel::{Env, ExecutionError};
use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

use super::re2::rust_pattern;
use super::regex::effort;

/// Most compiled patterns; all are dropped when there are more.
const KEPT: usize = 64;
/// Most effort of a pattern that is kept. Larger ones, of hostile catalogs, would hold too much memory.
const EFFORT: u64 = 4096;
/// Most memory of a pattern for the states that it meets, in bytes.
const STATES: usize = 128 << 10;

static PATTERNS: Mutex<Option<HashMap<String, Arc<Regex>>>> = Mutex::new(None);

/// Adds the function in both forms, `a.matches(b)` and `matches(a, b)`.
///
/// # Errors
/// The environment has such a function.
pub(super) fn add(environment: &mut Env) -> Result<(), cel::DeclarationError> {
    cel::add_overload!(environment, fn matches: (CelString, CelString) -> Result<CelBool>, id = "matches")?;
    cel::add_member_overload!(environment, fn matches: (CelString, CelString) -> Result<CelBool>)
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let pattern = compiled(pattern.inner()).map_err(|error| ExecutionError::FunctionError {
        function: "matches".to_owned(),
        message: format!("'{}' not a valid regex:\n{error}", pattern.inner()),
    })?;
    Ok(CelBool::from(pattern.is_match(text.inner())))
}

fn compiled(pattern: &str) -> Result<Arc<Regex>, regex::Error> {
    let known = |patterns: &Option<HashMap<String, Arc<Regex>>>| patterns.as_ref()?.get(pattern).cloned();
    if let Some(known) = known(&PATTERNS.lock()) {
        return Ok(known);
    }
    // Compiled outside of the lock: it takes long.
    let new = Arc::new(
        RegexBuilder::new(&rust_pattern(pattern))
            .dfa_size_limit(STATES)
            .build()?,
    );
    if effort(pattern) <= EFFORT {
        let mut patterns = PATTERNS.lock();
        let patterns = patterns.get_or_insert_default();
        if patterns.len() >= KEPT {
            patterns.clear();
        }
        patterns.insert(pattern.to_owned(), Arc::clone(&new));
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_ascii() {
        assert!(compiled(r"^\w+$").unwrap().is_match("abc"));
        assert!(!compiled(r"^\w+$").unwrap().is_match("é"));
    }

    #[test]
    fn a_pattern_is_compiled_once() {
        let first = compiled("^once[0-9]+$").unwrap();
        assert!(Arc::ptr_eq(&first, &compiled("^once[0-9]+$").unwrap()));
        let long = "a".repeat(5000);
        assert!(!Arc::ptr_eq(&compiled(&long).unwrap(), &compiled(&long).unwrap()));
        for number in 0..=KEPT {
            compiled(&format!("^{number}$")).unwrap();
        }
        assert!(PATTERNS.lock().as_ref().unwrap().len() <= KEPT);
    }
}
