//! The changelog of a release: one section of docs/CHANGELOG.md.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::release::Release;
use crate::shell::root;

/// Name of the section with unreleased changes.
const UNRELEASED: &str = "Unreleased";

/// Writes the section about the release, or the one with unreleased changes if the release has none.
pub(super) fn write(out: &Path, release: &Release) -> anyhow::Result<()> {
    let text = fs::read_to_string(root().join("docs/CHANGELOG.md")).context("cannot read the changelog")?;
    let section = if let Some(section) = section(&text, &release.version) {
        section
    } else {
        eprintln!(
            "docs/CHANGELOG.md has no section {}; the release has the section {UNRELEASED}",
            release.version
        );
        section(&text, UNRELEASED)
            .with_context(|| format!("docs/CHANGELOG.md has no section {UNRELEASED} either"))?
    };
    let text = format!("# {}\n\n{}\n", release.version, section.trim());
    fs::write(out.join("CHANGELOG.md"), text).context("cannot write the changelog")
}

/// Returns the text below the heading `## VERSION`. In the heading, a date may follow the version.
fn section<'a>(text: &'a str, version: &str) -> Option<&'a str> {
    text.split("\n## ").skip(1).find_map(|section| {
        let (heading, body) = section.split_once('\n')?;
        let name = heading.split_whitespace().next()?;
        (name.trim_matches(['[', ']']) == version).then_some(body)
    })
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn the_section_ends_at_the_next() {
        let text = "# Changelog\n\n## Unreleased\n\nnew\n\n## [1.0.0] - 2026-01-01\n\n### Added\n\nold\n";
        assert_eq!(section(text, "Unreleased"), Some("\nnew\n"));
        assert_eq!(section(text, "1.0.0"), Some("\n### Added\n\nold\n"));
        assert_eq!(section(text, "1.0"), None);
    }
}
