//! Vectors of the canonical form of whole catalogs: computes the recorded answers to `GET /catalogs/NAME/api/v1/all` from the
//! folder of the catalog, without a server.

use super::catalogs::missing;
use super::{Report, deviations, rows};
use data_encoding::HEXLOWER;
use olm_fbc::{IndexIgnore, Limits, decode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: u64,
    method: String,
    path: String,
    status: u16,
    raw_sha256: Option<String>,
}

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("canonical");
    let listed = deviations::listed("metas");
    let folders = [
        ("medium", "catalogs/medium"),
        ("synthetic", "catalogs/splits/metas-synthetic"),
    ];
    let rows = rows::<Row>(&dir.join("metas.jsonl"), &mut report);
    for (name, folder) in folders {
        let path = format!("/catalogs/{name}/api/v1/all");
        let wanted = rows
            .iter()
            .find(|row| row.method == "GET" && row.path == path && row.status == 200);
        let Some(row) = wanted else {
            continue;
        };
        let missing = match name {
            "medium" => missing(&dir.join("catalogs"), &["medium"]),
            _ => (!dir.join(folder).exists()).then(|| folder.to_owned()),
        };
        if let Some(missing) = missing {
            report.skip(missing);
            continue;
        }
        match digest(&dir.join(folder)) {
            Ok(digest) if Some(&digest) == row.raw_sha256.as_ref() => report.count(None),
            Ok(ours) => match listed.get(row.id.to_string().as_str()) {
                Some(integer) if upstreams(&dir.join(folder), integer).ok() == row.raw_sha256 => {
                    report.cases += 1;
                    report.deviating += 1;
                }
                _ => report.count(Some(format!("{name}: {ours}, upstream {:?}", row.raw_sha256))),
            },
            Err(error) => report.count(Some(format!("{name}: {error:#}"))),
        }
    }
    report
}

/// Returns the digest of all blobs of the catalog in `root`, in their order.
fn digest(root: &Path) -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    blobs(root, |blob| hash.update(blob))?;
    Ok(HEXLOWER.encode(&hash.finalize()))
}

/// Returns the digest of the catalog with `integer` corrupted as upstream corrupts it. This is the only accepted difference.
fn upstreams(root: &Path, integer: &str) -> anyhow::Result<String> {
    let damaged = format!("{}000", integer.get(..integer.len() - 3).unwrap_or_default());
    let mut hash = Sha256::new();
    blobs(root, |blob| {
        hash.update(String::from_utf8_lossy(blob).replace(integer, &damaged));
    })?;
    Ok(HEXLOWER.encode(&hash.finalize()))
}

/// Calls `each` for the blobs of the catalog in `root`, in their order.
fn blobs(root: &Path, mut each: impl FnMut(&[u8])) -> anyhow::Result<()> {
    let mut files = Vec::new();
    walk(root, &mut files)?;
    let mut rules = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".indexignore")) {
        let folder = file.parent().and_then(|parent| parent.strip_prefix(root).ok());
        let folder = folder
            .map(|folder| folder.display().to_string())
            .unwrap_or_default();
        rules.push((folder, std::fs::read_to_string(file)?));
    }
    let ignored = IndexIgnore::new(rules)?;
    let names = files.iter().filter(|file| !file.ends_with(".indexignore"));
    let names: anyhow::Result<Vec<_>> = names
        .map(|file| Ok(file.strip_prefix(root)?.display().to_string()))
        .collect();
    let mut names = names?;
    ignored.retain(&mut names)?;
    for name in names {
        for meta in decode(File::open(root.join(name))?, &Limits::default()) {
            each(&meta?.blob);
        }
    }
    Ok(())
}

/// Collects the files below `folder`, sorted by name, depth first.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect();
    let mut entries = entries?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            walk(&entry, files)?;
        } else {
            files.push(entry);
        }
    }
    Ok(())
}
