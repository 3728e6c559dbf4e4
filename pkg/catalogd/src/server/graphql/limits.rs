//! Limits on the cost of a query, checked before it runs.
//!
//! Fields and aliases count as they will run: those of a fragment count wherever it is used. A query that passes is
//! small, however its fragments are nested.

use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};

use super::shape::ShapeSize;

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

/// Returns an upper bound of the number of values that the introspection of a checked query returns.
pub(super) fn introspected_values(document: &ExecutableDocument, size: ShapeSize) -> usize {
    let roots = document.operations.iter();
    roots
        .map(|(_, operation)| introspected_below(document, &operation.node.selection_set.node, None, size))
        .fold(0, usize::saturating_add)
}

/// Returns the bound for a selection of `parents` values, or of the root if `None`.
///
/// One field refers to each object type. However types and fields alternate in a query, a level has thus no more values
/// than the schema has fields.
fn introspected_below(
    document: &ExecutableDocument,
    set: &SelectionSet,
    parents: Option<usize>,
    size: ShapeSize,
) -> usize {
    let mut values: usize = 0;
    for item in &set.items {
        let (below, parents) = match &item.node {
            Selection::Field(field) => {
                let count = match (parents, field.node.name.node.as_str()) {
                    // The library looks for all visible types first.
                    (None, "__schema" | "__type") => size.fields,
                    (None, _) => continue,
                    (Some(parents), "fields") => parents.max(size.fields),
                    (Some(parents), "types" | "possibleTypes" | "enumValues" | "directives" | "args") => {
                        parents.max(size.types)
                    }
                    (Some(parents), _) => parents,
                };
                values = values.saturating_add(count);
                let one_schema = parents.is_none();
                let count = if one_schema { 1 } else { count };
                (&field.node.selection_set.node, Some(count))
            }
            Selection::InlineFragment(fragment) => (&fragment.node.selection_set.node, parents),
            Selection::FragmentSpread(spread) => {
                let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) else {
                    continue;
                };
                (&fragment.node.selection_set.node, parents)
            }
        };
        values = values.saturating_add(introspected_below(document, below, parents, size));
    }
    values
}

struct Counter<'a> {
    document: &'a ExecutableDocument,
    fields: usize,
    aliases: usize,
}

impl Counter<'_> {
    fn count_field(&mut self) -> Result<(), String> {
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            return Err(format!("query exceeds maximum field count of {MAX_FIELDS}"));
        }
        Ok(())
    }

    fn add(&mut self, set: &SelectionSet, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("query exceeds maximum depth of {MAX_DEPTH}"));
        }
        for item in &set.items {
            let below = match &item.node {
                Selection::Field(field) => {
                    self.count_field()?;
                    if field.node.alias.is_some() {
                        self.aliases += 1;
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
                    // Validation reports unknown fragments. They count as fields: every path must end at something that
                    // counts, or fragments of fragments take forever.
                    let Some(fragment) = self.document.fragments.get(&spread.node.fragment_name.node) else {
                        self.count_field()?;
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
        // So do fragments that do not exist.
        let spreads = |name: &str| format!("...{name} ").repeat(200);
        let unknown = format!(
            "{{{}}} fragment A on Query {{{}}} fragment B on Query {{{}}} fragment C on Query {{{}}}",
            spreads("A"),
            spreads("B"),
            spreads("C"),
            spreads("D")
        );
        assert_eq!(check(&unknown), fields);
    }

    #[test]
    fn introspection_costs_as_many_values_as_it_can_return() {
        let size = ShapeSize {
            types: 10,
            fields: 100,
        };
        let values = |query: &str| introspected_values(&parse_query(query).unwrap(), size);
        assert_eq!(values("{ olmbundles { name types fields } }"), 0);
        assert_eq!(values("{ __schema { queryType { name } } }"), 102);
        assert_eq!(values("{ __schema { types { name fields { name } } } }"), 320);
        let twice = "{ ...A ... on Query { __type(name: \"Query\") { name } } } \
                     fragment A on Query { __schema { types { ...B } } } fragment B on __Type { name }";
        assert_eq!(values(twice), 221);
        // Types of fields of types: the library answers with no more than all fields at each level.
        let deep = "{ __schema { types { fields { type { fields { type { name } } } } } } }";
        assert_eq!(values(deep), 610);
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
