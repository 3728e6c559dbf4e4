//! Files of folders for the comparison of both readers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{Oracle, Report, compare};

/// Maximum size of a compared file, in bytes.
const FILE_BYTES: u64 = 16 << 20;
/// Total size of the files that are compared at a time, in bytes.
const BATCH_BYTES: usize = 32 << 20;
/// Maximum number of files for mutations. If there are more files, an evenly spread sample is used.
const CORPUS: usize = 3000;

/// Compares every file in a folder and its subfolders, except files above 16 MiB.
///
/// # Errors
/// A file is unreadable or the oracle exited.
pub fn files(oracle: &mut Oracle, dir: &Path) -> Result<Report> {
    let mut report = Report::default();
    let mut texts = Vec::new();
    let mut size = 0;
    for path in list(dir)? {
        let text = read(&path)?;
        size += text.len();
        texts.push((path.display().to_string(), text));
        if size > BATCH_BYTES {
            report.add(compare(oracle, &std::mem::take(&mut texts))?);
            size = 0;
        }
    }
    report.add(compare(oracle, &texts)?);
    Ok(report)
}

/// Returns texts to mutate: the YAML and JSON files of folders.
///
/// # Errors
/// A folder or a file is unreadable.
pub fn corpus(dirs: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for dir in dirs {
        paths.extend(list(dir)?);
    }
    let known = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
    };
    paths.retain(known);
    let step = paths.len().div_ceil(CORPUS).max(1);
    paths.iter().step_by(step).map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Lists the files of a folder and its subfolders, in a fixed order.
fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let about = fs::symlink_metadata(&path)?;
            if about.is_dir() {
                folders.push(path);
            } else if about.is_file() && about.len() <= FILE_BYTES {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
