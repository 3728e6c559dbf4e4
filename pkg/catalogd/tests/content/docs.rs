//! Runs the examples of docs/content-api.md and compares their output.
//!
//! A block marked `sh run` is run. The block after it, marked `text`, is its output, with `…` for any text.

use std::io::Write as _;
use std::process::Stdio;

use tokio::process::Command;

use super::served::Server;

const DOCUMENT: &str = include_str!("../../../../docs/content-api.md");

struct Example {
    script: String,
    prints: String,
}

fn examples(document: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut block, mut wants_text) = (None::<(&str, String)>, false);
    for line in document.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(info)) => block = Some((info, String::new())),
            (None, None) => {}
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (Some((info, text)), Some(_)) => {
                let text = std::mem::take(text);
                if *info == "sh run" {
                    examples.push(Example {
                        script: text,
                        prints: String::new(),
                    });
                    wants_text = true;
                } else if *info == "text" && wants_text {
                    examples.last_mut().unwrap().prints = text;
                    wants_text = false;
                }
                block = None;
            }
        }
    }
    examples
}

/// Reports whether `text` matches `pattern`, in which `…` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        last = Some(part);
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || last.is_some_and(|last| !last.is_empty() && text.ends_with(last))
}

#[test]
fn dots_stand_for_anything() {
    assert!(
        matches("a…c\n", "abbc\n") && matches("a\n", "a\n") && matches("…b", "ab") && matches("a…b", "abb")
    );
    assert!(!matches("a…c", "ab") && !matches("a", "ab") && !matches("…a", "ab"));
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_give_what_they_say() {
    if Command::new("curl")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .await
        .is_err()
    {
        writeln!(
            std::io::stderr(),
            "SKIPPED: no curl on the PATH, so the examples of docs/content-api.md were not run"
        )
        .unwrap();
        return;
    }
    let server = Server::start();
    let examples = examples(DOCUMENT);
    assert!(examples.len() >= 8, "the examples are not found");
    for Example { script, prints } in examples {
        let output = Command::new("sh")
            .args(["-euc", &script])
            .env("CATALOGD", &server.url)
            .env("CURL_CA_BUNDLE", &server.ca_file)
            .env("NO_PROXY", "*")
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && matches(&prints, &printed),
            "{script}prints\n{printed}not\n{prints}{errors}"
        );
    }
}
