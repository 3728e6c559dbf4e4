//! Random numbers that depend only on a seed, not on the machine or the version of a library.

use std::time::Duration;

/// Random number generator `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Returns a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        let number = self.next() % u64::from(limit.max(1));
        u32::try_from(number).unwrap_or_default()
    }

    /// Returns a duration of `least` to `most` milliseconds.
    pub fn millis(&mut self, least: u32, most: u32) -> Duration {
        let more = self.below(most.saturating_sub(least) + 1);
        Duration::from_millis(u64::from(least + more))
    }

    /// Returns one of the items; `None` if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(u32::try_from(items.len()).unwrap_or(u32::MAX)));
        items.get(index.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_numbers() {
        let numbers = |seed| {
            let mut seeded = Seeded::new(seed);
            [seeded.below(1000), seeded.below(1000), seeded.below(1000)]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_eq!(Seeded::new(1).pick::<u8>(&[]), None);
    }
}
