//! `cargo xtask generate`: writes the files that are generated from the code.
//!
//! These files are the CRDs in `config/crd`, one file per kind with a kustomization that lists them, and the pages of
//! `docs/reference`. A test of `test/integration` writes and checks the pages, because they need the code of the controllers,
//! whose compilation would delay every chore by minutes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Number, Value};

use crate::shell;

const FOLDER: &str = "config/crd";
const HEADER: &str = "# Made by `cargo xtask generate` from the types in api/. Do not edit.\n";

/// Writes all generated files. With `check`, writes nothing and fails if a CRD is stale; the tests check the pages.
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

/// Writes the CRDs. With `check`, writes nothing and fails with the names of stale files.
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

/// Returns the path, from the root of the workspace, and the content of every file in `config/crd`.
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

/// Returns the files in `folder` that are not generated any more.
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

/// Returns `value` as YAML. Fails if the YAML does not read back as the same value.
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

/// Turns whole floating point numbers into integers: the Rust type of a schema has floating point limits.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // A whole f64 prints as digits and ".0". Other numbers do not match and stay.
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
