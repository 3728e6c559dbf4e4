//! `crd-safety`: what an upgrade of CRDs would break, in full.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use olm_bundle::crd_safety::{self, Rules};
use serde_json::{Value, json};

use crate::cli::CrdSafetyArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::{Cluster, SourceError};
use crate::style::{Paint, Style};
use crate::table::clean;

/// Largest file that is read.
const FILE_LIMIT: u64 = 32 * 1024 * 1024;
/// Most files of a directory that are looked at.
const FILES: usize = 2000;

/// Compares every CRD that is on both sides; positive when nothing would break.
pub(crate) async fn run(args: CrdSafetyArgs, style: Style) -> Result<Report, Failure> {
    let (old, new) = match args.paths.as_slice() {
        [old, new] => (read(old)?, read(new)?),
        [new] => {
            let new = read(new)?;
            let cluster = Cluster::connect(&args.access).await?;
            let mut old = BTreeMap::new();
            for name in new.keys() {
                if let Some(crd) = cluster.crd(name).await? {
                    old.insert(name.clone(), crd);
                }
            }
            (old, new)
        }
        _ => return Err(Failure::Usage("give one or two paths".to_owned())),
    };
    let rules = if args.upstream {
        Rules::Upstream
    } else {
        Rules::Ours
    };
    let mut text = String::new();
    let mut crds = Vec::new();
    let mut breaking = 0;
    for (name, new) in &new {
        let shown = clean(name);
        let Some(old) = old.get(name) else {
            let _ = writeln!(text, "{shown}: new");
            crds.push(json!({"crd": name, "new": true, "findings": []}));
            continue;
        };
        let findings = crd_safety::check(old, new, rules);
        breaking += findings.len();
        if findings.is_empty() {
            let _ = writeln!(text, "{shown}: {}", style.paint(Paint::Good, "safe"));
        } else {
            let count = format!("{} findings", findings.len());
            let _ = writeln!(text, "{shown}: {}", style.paint(Paint::Bad, &count));
        }
        for finding in &findings {
            let _ = writeln!(text, "  {}", clean(&finding.to_string()));
        }
        let findings: Vec<Value> = findings
            .iter()
            .map(|finding| json!({"path": finding.path, "rule": finding.rule, "message": finding.message}))
            .collect();
        crds.push(json!({"crd": name, "new": false, "findings": findings}));
    }
    if new.is_empty() {
        return Err(Failure::No(
            "there is no CustomResourceDefinition to look at".to_owned(),
        ));
    }
    Ok(Report::new(json!({"crds": crds}), text).positive(breaking == 0))
}

/// The CRDs in a file, or in all files of a directory and the directories below it, such as a bundle.
fn read(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    let mut files = Vec::new();
    list(path, 0, &mut files)?;
    let mut crds = BTreeMap::new();
    for file in files {
        let text = contents(&file)?;
        // Most files of a bundle are something else.
        if !text.contains("CustomResourceDefinition") {
            continue;
        }
        let options = serde_saphyr::options! { strict_booleans: true };
        let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
            .map_err(|error| Failure::Usage(format!("{} is no YAML: {error}", file.display())))?;
        for document in documents {
            let is_crd = document.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition");
            if let Some(name) = document
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .filter(|_| is_crd)
            {
                crds.insert(name.to_owned(), document);
            }
        }
    }
    Ok(crds)
}

fn list(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let failed = |source| SourceError::Read {
        path: path.to_owned(),
        source,
    };
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let below = entry.path();
        let is_manifest = below
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if kind.is_dir() && depth < 3 {
            list(&below, depth + 1, files)?;
        } else if kind.is_file() && is_manifest && files.len() < FILES {
            files.push(below);
        }
    }
    Ok(())
}

fn contents(path: &Path) -> Result<String, SourceError> {
    let failed = |source| SourceError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(FILE_LIMIT).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
