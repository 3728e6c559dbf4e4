//! Sets of mostly consecutive numbers, with a short text form.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum length of a range in a text. A longer range is refused before it takes memory.
const LIMIT: u64 = 10_000_000;

/// A set of numbers. Its text form has ranges, such as `1-57 59`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Numbers(BTreeSet<u64>);

impl Numbers {
    /// Adds a number.
    pub fn insert(&mut self, number: u64) {
        self.0.insert(number);
    }

    /// Adds all numbers of another set.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Returns true if the set has the number.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        self.0.contains(&number)
    }

    /// Returns the count of numbers in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the set has no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.0.iter().copied().peekable();
        let mut gap = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if(|next| Some(*next) == last.checked_add(1)) {
                last = next;
            }
            write!(f, "{gap}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            gap = " ";
        }
        Ok(())
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = BTreeSet::new();
        for word in text.split_whitespace() {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let parse = |text: &str| text.parse::<u64>().map_err(|error| format!("{word}: {error}"));
            let (first, last) = (parse(first)?, parse(last)?);
            if last.checked_sub(first).is_none_or(|length| length >= LIMIT) {
                return Err(format!("{word} is no range of numbers"));
            }
            numbers.extend(first..=last);
        }
        Ok(Self(numbers))
    }
}

impl From<Numbers> for String {
    fn from(numbers: Numbers) -> Self {
        numbers.to_string()
    }
}

impl TryFrom<String> for Numbers {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_short_and_is_read_back() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.to_string().parse(), Ok(numbers.clone()));
        for number in [3, 1, 2, 7, u64::MAX] {
            numbers.insert(number);
        }
        assert_eq!(numbers.to_string(), format!("1-3 7 {}", u64::MAX));
        assert_eq!(numbers.to_string().parse(), Ok(numbers));
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in ["a", "1-", "3-1", "0-18446744073709551615"] {
            assert!(text.parse::<Numbers>().is_err(), "{text}");
        }
    }
}
