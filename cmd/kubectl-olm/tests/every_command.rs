//! Rules that hold for every command of `kubectl olm`, by the tree of its commands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use common::{Said, run};
use serde_json::Value;

/// Commands without subcommands, as the words that name them and their required arguments.
fn commands() -> Vec<(Vec<String>, Vec<String>)> {
    fn walk(command: &clap::Command, path: &[String], all: &mut Vec<(Vec<String>, Vec<String>)>) {
        let mut subcommands = command
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
            .peekable();
        if subcommands.peek().is_none() {
            let required = command.get_arguments().filter(|arg| arg.is_required_set());
            let words = required.flat_map(|arg| {
                let known = arg.get_possible_values();
                let value = known
                    .first()
                    .map_or("x1", clap::builder::PossibleValue::get_name)
                    .to_owned();
                let flag = arg
                    .get_long()
                    .filter(|_| !arg.is_positional())
                    .map(|flag| format!("--{flag}"));
                flag.into_iter().chain([value])
            });
            all.push((path.to_vec(), words.collect()));
        }
        for sub in subcommands {
            let path: Vec<String> = path.iter().cloned().chain([sub.get_name().to_owned()]).collect();
            walk(sub, &path, all);
        }
    }
    let mut all = Vec::new();
    walk(&olm_kubectl::command(), &[], &mut all);
    assert!(all.len() > 30, "{all:?}");
    all
}

fn said(words: &[&[String]], rest: &[&str]) -> Said {
    let words = words.iter().flat_map(|words| words.iter().map(String::as_str));
    run(&words.chain(rest.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn wrong_usage_is_told_as_data() {
    for (path, _) in commands() {
        for format in ["json", "yaml"] {
            let said = said(&[&path], &["--no-such-flag", "-o", format]);
            assert_eq!(said.code, 2, "{path:?}: {said}");
            let value: Value =
                serde_saphyr::from_str(&said.out).unwrap_or_else(|error| panic!("{path:?}: {error}: {said}"));
            assert_eq!(value["error"]["kind"], "WrongUsage", "{path:?}: {said}");
            let message = value["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("--no-such-flag"), "{path:?}: {said}");
        }
    }
}

/// Without a cluster, most commands fail. Whatever they answer is JSON, and errors name their exit code.
#[test]
fn answers_and_errors_are_json() {
    for (path, words) in commands() {
        let said = said(&[&path, &words], &["-o", "json"]);
        let value: Value =
            serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{path:?}: {error}: {said}"));
        if said.code > 1 {
            assert_eq!(value["error"]["exitCode"], said.code, "{path:?}: {said}");
        }
        if let Some(message) = value["error"]["message"].as_str() {
            assert!(said.err.contains("error: "), "{path:?}: {said}");
            assert!(!message.is_empty() && !message.ends_with('…'), "{path:?}: {said}");
        }
    }
}

/// A command that is nearly right is suggested, also below a command.
#[test]
fn misspelt_commands_are_recognised() {
    for (path, _) in commands() {
        let (last, before) = path.split_last().unwrap();
        let mut letters: Vec<char> = last.chars().collect();
        letters.push('q');
        let wrong: String = letters.into_iter().collect();
        let said = said(&[before], &[&wrong]);
        assert_eq!(said.code, 2, "{path:?}: {said}");
        assert!(said.err.contains(&format!("'{last}'")), "{path:?}: {said}");
    }
}
