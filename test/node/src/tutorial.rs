//! Check of docs/tutorial.md: runs every command, section by section, and compares the output with the page.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use olm_harness::workspace;

use crate::cluster::attempt_in;
use crate::content::{PRIVATE_REGISTRY, SECURE_REGISTRY};
use crate::report::Report;

/// Path of the page, by which `ONLY` selects this check.
pub(crate) const FILE: &str = "docs/tutorial.md";
/// Registries on the page, and those of the node in their place. The catalog without TLS names bundles of the registry without
/// TLS. `public.example.com` stays, because the page configures a mirror of it.
const REGISTRIES: [(&str, &str); 4] = [
    // The name has no port, so that the private registry, which has the same name, is also allowed.
    (
        "--internal-registry registry.example.com",
        "--internal-registry registry.registry.svc",
    ),
    (
        "registry.example.com/catalogs/sample:v1",
        "registry.registry.svc:5443/catalogs/sample-secure:v1",
    ),
    ("registry.example.com", SECURE_REGISTRY),
    ("private.example.com", PRIVATE_REGISTRY),
];

/// A section of the page: its commands, and the lines that their output must have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    title: String,
    blocks: Vec<Block>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    commands: String,
    /// Lines that the output must have in this order. `…` stands for any text.
    output: Vec<String>,
}

/// Runs the sections in one folder, up to the first one that fails.
pub(crate) async fn check(report: &mut Report) {
    let prepared = prepare();
    let (folder, sections) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            report.check(FILE, async { Err(error) }).await;
            return;
        }
    };
    let mut goes_on = true;
    for section in sections {
        let title = format!("{FILE}: {}", section.title);
        if goes_on {
            goes_on = report.check(&title, async { section.run(folder.path()) }).await;
        } else {
            report.skip(&title, "an earlier section failed");
        }
    }
}

fn prepare() -> Result<(tempfile::TempDir, Vec<Section>)> {
    let mut page = fs::read_to_string(workspace::root().join(FILE))?;
    for (written, real) in REGISTRIES {
        page = page.replace(written, real);
    }
    let sections = sections(&page)?;
    ensure!(!sections.is_empty(), "the page has no commands");
    let folder = tempfile::tempdir()?;
    let authority = std::env::var("PKI").context("PKI is not set")?;
    fs::copy(format!("{authority}/ca.crt"), folder.path().join("ca.crt"))?;
    Ok((folder, sections))
}

impl Section {
    fn run(&self, folder: &Path) -> Result<String> {
        for block in &self.blocks {
            let script = format!("set -x\n{}", block.commands);
            let ended = attempt_in(folder, "bash", &["-euo", "pipefail", "-c", &script], "")?;
            ensure!(
                ended.code == Some(0),
                "exit code {:?}: {}\n{}",
                ended.code,
                ended.err,
                ended.out
            );
            // Commands print progress on standard error and results on standard output.
            let said = format!("{}\n{}", ended.err, ended.out);
            let mut lines = ended.out.lines();
            for expected in &block.output {
                ensure!(
                    lines.any(|line| fits(expected, line)),
                    "no line fits {expected:?}, in this order: {said}"
                );
            }
        }
        Ok(String::new())
    }
}

/// Returns true if the line equals the expected text, in which `…` stands for any text.
fn fits(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        open = true;
        let Some(place) = rest.find(part) else {
            return false;
        };
        rest = &rest[place + part.len()..];
        if !part.is_empty() {
            open = false;
        }
    }
    open || rest.is_empty()
}

/// Parses the sections of the page that have commands. Commands are fenced blocks `sh`, and their output is the block `text` that
/// follows.
fn sections(page: &str) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push(Section {
                title: title.to_owned(),
                blocks: Vec::new(),
            });
        }
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let section = sections.last_mut().context("a block before the first section")?;
        match language {
            "sh" => section.blocks.push(Block {
                commands: body.join("\n"),
                output: Vec::new(),
            }),
            "text" => {
                let block = section.blocks.last_mut().context("output without commands")?;
                block.output.extend(body.into_iter().map(ToOwned::to_owned));
            }
            other => bail!("a block of {other:?} is neither commands nor output"),
        }
    }
    sections.retain(|section| !section.blocks.is_empty());
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_sections_of_commands_and_output() {
        let page = "# Page\n\n## Words\n\nonly\n\n## Do\n\n```sh\na \\\n  b\n```\n\n```text\nc…\n```\n\n```sh\nd\n```\n";
        let section = Section {
            title: "Do".to_owned(),
            blocks: vec![
                Block {
                    commands: "a \\\n  b".to_owned(),
                    output: vec!["c…".to_owned()],
                },
                Block {
                    commands: "d".to_owned(),
                    output: Vec::new(),
                },
            ],
        };
        assert_eq!(sections(page).unwrap(), [section]);
        sections("## Do\n```text\nc\n```\n").unwrap_err();
        sections("## Do\n```yaml\nc: 1\n```\n").unwrap_err();
    }

    #[test]
    fn an_ellipsis_stands_for_any_text() {
        for (expected, line, fit) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a…", "ab", true),
            ("…b", "ab", true),
            ("…b", "abc", false),
            ("…a…c…", "abcd", true),
            ("…c…a…", "abcd", false),
        ] {
            assert_eq!(fits(expected, line), fit, "{expected} {line}");
        }
    }
}
