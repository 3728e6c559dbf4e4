//! Memory of the typed content of a package, before and after it is parsed.
//!
//! Texts such as `[0],[0]` or `{},{}` take some forty times their length as values. Parsers of untrusted content check
//! the estimate first, and count the parsed content at its actual size.

use std::mem::size_of;

use serde_json::Value;

use crate::lifecycle::{Lifecycles, Phase, Platform};
use crate::{Bundle, Channel, DeprecationEntry, Deprecations, Entry, Package, Property};

/// Minimum memory of one value of a JSON text, in bytes: an entry of a channel is the largest.
const VALUE: u64 = 96;
/// Overhead of the allocator and a map's node per allocation, in bytes.
const ALLOCATION: u64 = 16;

/// Estimates the memory of the values of a JSON text from its length and the number of its values, in bytes. Reads the text
/// once and builds nothing.
pub fn of_text(json: &[u8]) -> u64 {
    let (mut values, mut quoted, mut escaped) = (1_u64, false, false);
    for byte in json {
        if escaped {
            escaped = false;
        } else if quoted {
            match byte {
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => quoted = true,
                b',' | b'[' | b'{' | b':' => values += 1,
                _ => {}
            }
        }
    }
    (json.len() as u64).saturating_add(values.saturating_mul(VALUE))
}

/// Memory that a value takes, in bytes, with everything below it.
pub(crate) trait Footprint {
    /// Memory below the value itself.
    fn below(&self) -> u64;
}

impl Footprint for String {
    fn below(&self) -> u64 {
        if self.capacity() == 0 {
            0
        } else {
            self.capacity() as u64 + ALLOCATION
        }
    }
}

impl<T: Footprint> Footprint for Vec<T> {
    fn below(&self) -> u64 {
        let room = self.capacity() as u64 * size_of::<T>() as u64;
        self.iter().map(Footprint::below).sum::<u64>() + room + ALLOCATION
    }
}

impl Footprint for Value {
    fn below(&self) -> u64 {
        olm_yaml::memory(self) as u64
    }
}

impl Footprint for Property {
    fn below(&self) -> u64 {
        self.type_.below() + self.value.below()
    }
}

impl Footprint for Bundle {
    fn below(&self) -> u64 {
        let version = self.min_kube_version.as_ref();
        let version = version.map_or(0, |version| version.len() as u64 + ALLOCATION);
        self.name.below() + self.image.below() + self.properties.below() + version
    }
}

impl Footprint for Entry {
    fn below(&self) -> u64 {
        self.name.below() + self.replaces.below() + self.skips.below() + self.skip_range.below()
    }
}

impl Footprint for Channel {
    fn below(&self) -> u64 {
        self.name.below() + self.entries.below()
    }
}

impl Footprint for DeprecationEntry {
    fn below(&self) -> u64 {
        self.reference.schema.below() + self.reference.name.below() + self.message.below()
    }
}

impl Footprint for Deprecations {
    fn below(&self) -> u64 {
        self.entries.below()
    }
}

impl Footprint for Package {
    fn below(&self) -> u64 {
        self.name.below() + self.default_channel.below() + self.description.below()
    }
}

impl Footprint for Phase {
    fn below(&self) -> u64 {
        self.name.below()
    }
}

impl Footprint for Platform {
    fn below(&self) -> u64 {
        let versions = self.versions.capacity() * size_of::<olm_version::MinorVersion>();
        self.name.below() + versions as u64 + ALLOCATION
    }
}

impl Lifecycles {
    /// Returns the memory below the value itself, in bytes.
    pub fn memory(&self) -> u64 {
        let entry = size_of::<crate::lifecycle::Lifecycle>() as u64 + VALUE;
        let versions = self
            .versions()
            .map(|(_, of)| of.phases.below() + of.platforms.below() + entry);
        versions.sum::<u64>() + self.ignored().len() as u64 * 4 * VALUE
    }
}

/// Memory of a value that is kept in a map under a name, in bytes.
pub(crate) fn of_entry<T: Footprint>(key: &String, value: &T) -> u64 {
    key.below() + value.below() + size_of::<T>() as u64 + ALLOCATION
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_estimate_counts_values_and_not_what_strings_hold() {
        assert_eq!(of_text(br#"{"a":"[,{:\"["}"#), 15 + 3 * VALUE);
        assert_eq!(of_text(b"[0,1]"), 5 + 3 * VALUE);
    }

    #[test]
    fn small_values_are_counted_at_what_they_take() {
        let text = format!("[{}]", vec!["[0]"; 10_000].join(","));
        let value: Value = serde_json::from_str(&text).unwrap();
        let taken = value.below();
        assert!(taken > 20 * text.len() as u64, "{taken} for {} bytes", text.len());
        assert!(of_text(text.as_bytes()) > taken / 2);
        let entries: Vec<Entry> =
            serde_json::from_str(&format!("[{}]", vec!["{}"; 1_000].join(","))).unwrap();
        assert!(entries.below() >= 1_000 * size_of::<Entry>() as u64);
        assert_eq!(json!(7).below(), 0);
    }
}
