//! What a query may cost, checked before it is run.
//!
//! Fields and aliases are counted as they will be run: those of a fragment for every place that uses it. So what
//! passes is small, however its fragments are nested.

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};

/// Longest query, in bytes.
pub(super) const QUERY: usize = 100_000;
const DEPTH: usize = 10;
const FIELDS: usize = 500;
const ALIASES: usize = 50;
/// Deepest nesting of brackets that is parsed; the parser calls itself for each.
const BRACKETS: usize = 100;

/// Whether the text can be parsed without deep recursion; the error is for the client.
pub(super) fn text(query: &str) -> Result<(), String> {
    let (mut depth, mut rest) = (0_usize, query);
    while let Some(char) = rest.chars().next() {
        let mut skip = char.len_utf8();
        match char {
            '{' | '[' | '(' => {
                depth += 1;
                if depth > BRACKETS {
                    return Err(format!("query exceeds maximum depth of {DEPTH}"));
                }
            }
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            '#' => skip = rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '"' => skip = string(rest),
            _ => {}
        }
        rest = rest.get(skip..).unwrap_or_default();
    }
    Ok(())
}

/// The length of the string that `text` begins with, or of its quote when it has no end.
fn string(text: &str) -> usize {
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

/// Whether a parsed query keeps the limits; the error is for the client.
pub(super) fn document(document: &ExecutableDocument) -> Result<(), String> {
    let mut count = Count {
        document,
        fields: 0,
        aliases: 0,
    };
    document
        .operations
        .iter()
        .try_for_each(|(_, operation)| count.add(&operation.node.selection_set.node, 0))
}

struct Count<'a> {
    document: &'a ExecutableDocument,
    fields: usize,
    aliases: usize,
}

impl Count<'_> {
    fn add(&mut self, set: &SelectionSet, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err(format!("query exceeds maximum depth of {DEPTH}"));
        }
        for item in &set.items {
            let below = match &item.node {
                Selection::Field(field) => {
                    self.fields += 1;
                    if field.node.alias.is_some() {
                        self.aliases += 1;
                    }
                    if self.fields > FIELDS {
                        return Err(format!("query exceeds maximum field count of {FIELDS}"));
                    }
                    if self.aliases > ALIASES {
                        return Err(format!("query exceeds maximum alias count of {ALIASES}"));
                    }
                    let below = &field.node.selection_set.node;
                    if below.items.is_empty() {
                        continue;
                    }
                    below
                }
                Selection::InlineFragment(fragment) => &fragment.node.selection_set.node,
                Selection::FragmentSpread(spread) => {
                    // What is unknown is found when the query is validated.
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
        text(query)?;
        document(&parse_query(query).unwrap())
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
        // What fragments multiply is counted.
        let bomb = "{...A} fragment A on Query {...B ...B ...B ...B ...B ...B ...B ...B} fragment B on Query \
                    {...C ...C ...C ...C ...C ...C ...C ...C} fragment C on Query {a b c d e f g h}";
        assert_eq!(check(bomb), fields);
        assert_eq!(check("{...A} fragment A on Query {...A}"), deep);
    }

    #[test]
    fn brackets_are_counted_before_they_are_parsed() {
        let deep = Err("query exceeds maximum depth of 10".to_owned());
        assert_eq!(text(&"{a".repeat(40_000)), deep);
        assert_eq!(text(&format!("{{a(b:{}", "[".repeat(40_000))), deep);
        // Neither strings nor comments hide or make brackets.
        let in_strings = format!(
            "{{a(b:\"{}\" c:\"\"\"{}\\\"\"\"\"\"\")}} # {}",
            "[".repeat(200),
            "{".repeat(200),
            "(".repeat(200)
        );
        assert_eq!(text(&in_strings), Ok(()));
        let hidden = "{a(b:\"}\") ".repeat(101);
        assert_eq!(text(&hidden), deep);
        assert_eq!(text(&"{a(b:\"\"\"}\"\"\") ".repeat(101)), deep);
        assert_eq!(text(&"{a #}\n".repeat(101)), deep);
        assert_eq!(text(&"{\"\n".repeat(101)), deep);
    }
}
