//! Effort of compiling a pattern, without compiling it.

/// Effort of the largest pattern that the library compiles.
pub(super) const MOST: u64 = 10_000_000;
/// Effort of a class such as `\w`, which covers all of Unicode.
const CLASS: u64 = 256;

/// Returns an upper bound for the number of states of a pattern: its length, multiplied by every number in it that can be
/// a count of repetitions (`{1,63}`), or the width of a format (`%.3f`).
pub(super) fn effort(pattern: &str) -> u64 {
    let (mut length, mut repeated) = (1_u64, 1_u64);
    let (mut number, mut counts) = (0_u64, false);
    for c in pattern.chars() {
        length = length.saturating_add(if c == '\\' { CLASS } else { 1 });
        counts = match c {
            '{' | '%' => true,
            ',' | '.' | '0'..='9' => counts,
            _ => false,
        };
        if let (true, Some(digit)) = (counts, c.to_digit(10)) {
            number = number.saturating_mul(10).saturating_add(digit.into());
        } else {
            repeated = repeated.saturating_mul(number.max(1));
            number = 0;
        }
    }
    repeated = repeated.saturating_mul(number.max(1));
    length.saturating_mul(repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply() {
        assert!(effort("^[a-z0-9]+$") < 20);
        assert!(effort("[a-z]{1,63}") > 63 * 5);
        assert!(effort("(a{1000}){1000}") > 1_000_000);
        assert!(effort("%.2000000000f") > 2_000_000_000);
        assert!(effort(r"\w\w") > 2 * CLASS);
        assert!(effort(&"{9999}".repeat(200)) == u64::MAX);
    }
}
