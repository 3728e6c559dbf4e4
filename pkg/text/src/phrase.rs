//! Phrases: counts, lists with an end, the first sentence of a description.

use std::borrow::Borrow;

/// Returns a count with its noun: `1 error`, `2 errors`.
pub fn counted(count: usize, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// Returns the first line of prose of a description, skipping headings, pictures and markup; at most `limit`
/// characters.
pub fn summary(text: &str, limit: usize) -> String {
    let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', '<', '!', '[', '=', '-', '*', '|']);
    let prose = text.lines().map(str::trim).find(says);
    brief(
        prose.unwrap_or_else(|| text.trim().trim_start_matches(['#', ' '])),
        limit,
    )
}

/// Returns the first `limit` characters of the first line.
fn brief(text: &str, limit: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    if line.chars().count() <= limit {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(limit.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// Returns the first `limit` of `items`, and the number of further ones.
pub fn list<S: Borrow<str>>(items: &[S], limit: usize) -> String {
    let named = items
        .iter()
        .take(limit)
        .map(Borrow::borrow)
        .collect::<Vec<&str>>()
        .join(", ");
    match items.len() {
        count if count > limit => format!("{named} and {} more", count - limit),
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "error")),
            ["0 errors", "1 error", "2 errors"]
        );
    }

    #[test]
    fn only_summaries_are_cut() {
        assert_eq!(brief("one two\nthree", 20), "one two");
        assert_eq!(brief("one two three", 8), "one two…");
        assert_eq!(summary("# Title\n\nSays it.", 20), "Says it.");
        assert_eq!(summary("## Title", 20), "Title");
        assert_eq!(list(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
