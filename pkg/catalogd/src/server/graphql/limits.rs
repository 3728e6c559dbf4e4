//! Limits on the cost of a query, checked before it runs.
//!
//! Fields and aliases count as they will run: those of a fragment count wherever it is used. A query that passes is
//! small, however its fragments are nested.

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};

/// Maximum size of a query, in bytes.
pub(super) const MAX_QUERY: usize = 100_000;
const MAX_DEPTH: usize = 10;
const MAX_FIELDS: usize = 500;
const MAX_ALIASES: usize = 50;
/// Maximum nesting of brackets; the parser recurses for each.
const MAX_BRACKETS: usize = 100;

/// Checks that the text can be parsed without deep recursion; the error is for the client.
pub(super) fn check_brackets(query: &str) -> Result<(), String> {
    let (mut depth, mut rest) = (0_usize, query);
    while let Some(char) = rest.chars().next() {
        let mut skip = char.len_utf8();
        match char {
            '{' | '[' | '(' => {
                depth += 1;
                if depth > MAX_BRACKETS {
                    return Err(format!("query exceeds maximum depth of {MAX_DEPTH}"));
                }
            }
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            '#' => skip = rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '"' => skip = string_length(rest),
            _ => {}
        }
        rest = rest.get(skip..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the length of the string at the start of `text`, or of its quote if the string has no end.
fn string_length(text: &str) -> usize {
    if let Some(block) = text.strip_prefix("\"\"\"") {
        let mut from = 0;
        while let Some(at) = block.get(from..).and_then(|rest| rest.find("\"\"\"")) {
            let end = from + at;
            if !block.get(..end).unwrap_or_default().ends_with('\\') {
                return end + 6;
            }
            from = end + 3;
        }
        return 3;
    }
    let mut escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            '\n' | '\r' => return 1,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    1
}

/// Checks the limits of a parsed query; the error is for the client.
pub(super) fn check_document(document: &ExecutableDocument) -> Result<(), String> {
    let mut count = Counter {
        document,
        fields: 0,
        aliases: 0,
    };
    document
        .operations
        .iter()
        .try_for_each(|(_, operation)| count.add(&operation.node.selection_set.node, 0))
}

struct Counter<'a> {
    document: &'a ExecutableDocument,
    fields: usize,
    aliases: usize,
}

impl Counter<'_> {
    fn add(&mut self, set: &SelectionSet, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("query exceeds maximum depth of {MAX_DEPTH}"));
        }
        for item in &set.items {
            let below = match &item.node {
                Selection::Field(field) => {
                    self.fields += 1;
                    if field.node.alias.is_some() {
                        self.aliases += 1;
                    }
                    if self.fields > MAX_FIELDS {
                        return Err(format!("query exceeds maximum field count of {MAX_FIELDS}"));
                    }
                    if self.aliases > MAX_ALIASES {
                        return Err(format!("query exceeds maximum alias count of {MAX_ALIASES}"));
                    }
                    let below = &field.node.selection_set.node;
                    if below.items.is_empty() {
                        continue;
                    }
                    below
                }
                Selection::InlineFragment(fragment) => &fragment.node.selection_set.node,
                Selection::FragmentSpread(spread) => {
                    // Validation reports unknown fragments.
                    let Some(fragment) = self.document.fragments.get(&spread.node.fragment_name.node) else {
                        continue;
                    };
                    &fragment.node.selection_set.node
                }
            };
            self.add(below, depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn check(query: &str) -> Result<(), String> {
        check_brackets(query)?;
        check_document(&parse_query(query).unwrap())
    }

    fn nested(levels: usize) -> String {
        format!("{{a{}{}", "{a".repeat(levels), "}".repeat(levels + 1))
    }

    #[test]
    fn limits_hold() {
        assert_eq!(check("{a}"), Ok(()));
        assert_eq!(check(&nested(10)), Ok(()));
        let deep = Err("query exceeds maximum depth of 10".to_owned());
        assert_eq!(check(&nested(11)), deep);
        let fields = Err("query exceeds maximum field count of 500".to_owned());
        assert_eq!(check(&format!("{{{}}}", "a ".repeat(500))), Ok(()));
        assert_eq!(check(&format!("{{{}}}", "a ".repeat(501))), fields);
        let aliases: String = (0..51).fold(String::new(), |text, n| format!("{text}b{n}:a "));
        assert_eq!(
            check(&format!("{{{aliases}}}")),
            Err("query exceeds maximum alias count of 50".to_owned())
        );
        // Fields count as often as fragments multiply them.
        let bomb = "{...A} fragment A on Query {...B ...B ...B ...B ...B ...B ...B ...B} fragment B on Query \
                    {...C ...C ...C ...C ...C ...C ...C ...C} fragment C on Query {a b c d e f g h}";
        assert_eq!(check(bomb), fields);
        assert_eq!(check("{...A} fragment A on Query {...A}"), deep);
    }

    #[test]
    fn brackets_are_counted_before_they_are_parsed() {
        let deep = Err("query exceeds maximum depth of 10".to_owned());
        assert_eq!(check_brackets(&"{a".repeat(40_000)), deep);
        assert_eq!(check_brackets(&format!("{{a(b:{}", "[".repeat(40_000))), deep);
        // Strings and comments neither hide nor add brackets.
        let in_strings = format!(
            "{{a(b:\"{}\" c:\"\"\"{}\\\"\"\"\"\"\")}} # {}",
            "[".repeat(200),
            "{".repeat(200),
            "(".repeat(200)
        );
        assert_eq!(check_brackets(&in_strings), Ok(()));
        let hidden = "{a(b:\"}\") ".repeat(101);
        assert_eq!(check_brackets(&hidden), deep);
        assert_eq!(check_brackets(&"{a(b:\"\"\"}\"\"\") ".repeat(101)), deep);
        assert_eq!(check_brackets(&"{a #}\n".repeat(101)), deep);
        assert_eq!(check_brackets(&"{\"\n".repeat(101)), deep);
    }
}
