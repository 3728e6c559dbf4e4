//! `cargo xtask generate`: the files that follow from the code, written the same way every time.
//!
//! These are the CRDs under `config/crd`, one file per kind, with the kustomization that lists them, and the pages of
//! `docs/reference`. A test of `test/integration` writes and checks the pages, because they need the controllers' code,
//! which would take minutes to compile before each chore.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Number, Value};

use crate::shell;

const FOLDER: &str = "config/crd";
const HEADER: &str = "# Made by `cargo xtask generate` from the types in api/. Do not edit.\n";

/// Writes all generated files. With `check` it writes nothing, and fails if a CRD is stale; the suite checks the pages.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    crds(check)?;
    if check {
        return Ok(());
    }
    shell::run(
        shell::cargo()
            .args(["test", "--quiet", "--locked", "--package", "olm-integration"])
            .args(["--test", "reference"])
            .env("OLM_WRITE_REFERENCE", "1"),
    )
}

/// Writes the CRDs; with `check` writes nothing and fails naming those that are stale.
fn crds(check: bool) -> anyhow::Result<()> {
    let root = shell::root();
    let files = files()?;
    let mut stale = Vec::new();
    for (path, content) in &files {
        if fs::read_to_string(root.join(path)).is_ok_and(|now| now == *content) {
            continue;
        }
        stale.push(path.clone());
        if !check {
            write(&root.join(path), content)?;
            eprintln!("wrote {path}");
        }
    }
    for path in leftovers(&root.join(FOLDER), &files)? {
        if !check {
            fs::remove_file(root.join(&path)).with_context(|| format!("cannot remove {path}"))?;
            eprintln!("removed {path}");
        }
        stale.push(path);
    }
    if check && !stale.is_empty() {
        bail!(
            "stale: {}; run `cargo xtask generate` and commit the result",
            stale.join(", ")
        );
    }
    Ok(())
}

/// Every generated file: its path from the workspace's root, and its content.
fn files() -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut kustomization =
        format!("{HEADER}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n");
    for crd in olm_api::crds() {
        let name = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
        let mut value = serde_json::to_value(&crd).with_context(|| format!("cannot serialize {name}"))?;
        whole_numbers(&mut value);
        let yaml = yaml(&value).with_context(|| format!("cannot write {name} as YAML"))?;
        writeln!(kustomization, "- {name}")?;
        files.push((format!("{FOLDER}/{name}"), format!("{HEADER}{yaml}")));
    }
    files.push((format!("{FOLDER}/kustomization.yaml"), kustomization));
    Ok(files)
}

/// Files of `folder` that nothing generates any more.
fn leftovers(folder: &Path, files: &[(String, String)]) -> anyhow::Result<Vec<String>> {
    let mut left = Vec::new();
    if !folder.exists() {
        return Ok(left);
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let name = entry?.file_name();
        let path = format!("{FOLDER}/{}", name.to_string_lossy());
        if !files.iter().any(|(known, _)| *known == path) {
            left.push(path);
        }
    }
    left.sort();
    Ok(left)
}

fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns YAML that reads back as `value`.
pub(crate) fn yaml(value: &Value) -> anyhow::Result<String> {
    let options = serde_saphyr::ser_options! {
        prefer_block_scalars: false,
        compact_list_indent: true,
        yaml_12: false,
    };
    let text = serde_saphyr::to_string_with_options(value, options)?;
    let back: Value = serde_saphyr::from_str(&text)?;
    ensure!(back == *value, "what was written reads back differently");
    Ok(text)
}

/// Limits are floating point numbers in the schema's type; whole ones are written as integers.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // A whole f64 prints as digits and ".0"; anything else does not parse and stays.
            let text = number.to_string();
            if let Some(Ok(whole)) = text.strip_suffix(".0").map(str::parse::<i64>) {
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{crds, files};

    #[test]
    fn the_committed_files_are_fresh() {
        crds(true).unwrap();
    }

    #[test]
    fn two_runs_are_equal() {
        assert_eq!(files().unwrap(), files().unwrap());
    }
}
