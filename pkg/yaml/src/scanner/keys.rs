//! Tokens that may start a key.

use super::Scanner;
use crate::YamlError;
use crate::cursor::Mark;

/// Maximum length of a key without `?`, in characters.
const LONGEST_KEY: usize = 1024;

/// A token that may start a key.
#[derive(Clone, Copy, Default)]
pub(super) struct PossibleKey {
    pub(super) possible: bool,
    /// True if the token must start a key, because it is at the indentation of a block mapping.
    pub(super) required: bool,
    /// True if the token stays in the queue until the key is certain.
    pub(super) pending: bool,
    /// Number of the token in the text.
    pub(super) token: usize,
    pub(super) mark: Mark,
}

impl Scanner<'_> {
    /// Returns true if the first token of the queue may start a key.
    pub(super) fn head_may_be_key(&mut self) -> Result<bool, YamlError> {
        let first = self.keys.partition_point(|key| key.token < self.taken);
        let level = self.keys.get(first..).unwrap_or_default();
        let found = level
            .iter()
            .take_while(|key| key.token == self.taken)
            .position(|key| key.pending);
        match found {
            Some(at) => self.is_still_possible(first + at),
            None => Ok(false),
        }
    }

    /// Returns true if the key of a level is still possible: neither too long nor on an earlier line.
    pub(super) fn is_still_possible(&mut self, level: usize) -> Result<bool, YamlError> {
        let here = self.cursor.mark();
        let Some(key) = self.keys.get_mut(level) else {
            return Ok(false);
        };
        if key.possible && (key.mark.line < here.line || key.mark.index + LONGEST_KEY < here.index) {
            if key.required {
                return Err(self.cursor.fault(key.mark, "could not find expected ':'"));
            }
            key.possible = false;
        }
        Ok(key.possible)
    }

    /// Records that the next token may start a key.
    pub(super) fn save_key(&mut self) -> Result<(), YamlError> {
        if self.key_allowed {
            self.drop_key()?;
            let key = PossibleKey {
                possible: true,
                required: !self.in_flow() && self.indent == self.column(),
                pending: true,
                token: self.next_number(),
                mark: self.cursor.mark(),
            };
            if let Some(last) = self.keys.last_mut() {
                *last = key;
            }
        }
        Ok(())
    }

    /// Drops the possible key of this level.
    pub(super) fn drop_key(&mut self) -> Result<(), YamlError> {
        if let Some(key) = self.keys.last_mut().filter(|key| key.possible) {
            if key.required {
                return Err(self.cursor.fault(key.mark, "could not find expected ':'"));
            }
            key.possible = false;
            key.pending = false;
        }
        Ok(())
    }
}
