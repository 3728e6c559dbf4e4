//! Intended deviations from upstream, which `docs/deviations.md` lists.
//!
//! The document has fenced blocks that start with `cases KIND`. Each line of a block has the id of a case, a space, and this
//! project's answer.

use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../../docs/deviations.md");

/// Returns the listed cases of `kind`, each with this project's answer.
pub fn listed(kind: &str) -> BTreeMap<&'static str, &'static str> {
    read(DOCUMENT, kind)
}

fn read<'a>(document: &'a str, kind: &str) -> BTreeMap<&'a str, &'a str> {
    let mut cases = BTreeMap::new();
    let mut inside = false;
    for line in document.lines() {
        if let Some(info) = line.strip_prefix("```") {
            inside = !inside && info.trim().strip_prefix("cases ") == Some(kind);
        } else if inside {
            let (id, answer) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            cases.insert(id, answer.trim());
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn reads_the_blocks_of_a_kind() {
        let document = "# x\n```cases a\n1 one more\n2\n```\n```cases b\n3 x\n```\n```\n4 x\n```\n";
        assert_eq!(
            read(document, "a").into_iter().collect::<Vec<_>>(),
            [("1", "one more"), ("2", "")]
        );
        assert_eq!(read(document, "b").len(), 1);
    }
}
