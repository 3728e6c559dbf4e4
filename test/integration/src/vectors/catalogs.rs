//! Recorded catalogs, each of which is read at its first use and only once.

use olm_fbc::{Limits, Meta, PackageBuilder, PackageContent, decode};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Packages of a catalog, by name.
type Packages = BTreeMap<String, Arc<PackageContent>>;

/// Result of a package lookup in a recorded catalog.
pub(crate) enum Lookup {
    Found(Arc<PackageContent>),
    /// The catalog does not have the package.
    Absent,
    /// The recording of the catalog is missing or incomplete, with the missing part.
    Missing(String),
}

/// Catalogs in one folder. The large catalog has a folder for each package; the others are files of metas (split catalogs).
pub(crate) struct Catalogs {
    root: PathBuf,
    /// Split catalogs that were read, by path.
    splits: BTreeMap<String, Packages>,
    /// Folders of the large catalog, once they are known.
    folders: Option<Folders>,
    /// Packages of the large catalog that were read.
    large: Packages,
}

impl Catalogs {
    pub(crate) fn new(root: &Path) -> Self {
        let root = root.to_path_buf();
        Self {
            root,
            splits: BTreeMap::new(),
            folders: None,
            large: BTreeMap::new(),
        }
    }

    /// Returns a package of the catalog `content`: `large`, or a file of split metas.
    pub(crate) fn package(&mut self, content: &str, name: &str) -> anyhow::Result<Lookup> {
        if content == "large" {
            return self.large_package(name);
        }
        if !self.root.join(content).exists() {
            return Ok(Lookup::Missing(format!("catalogs/{content}")));
        }
        if !self.splits.contains_key(content) {
            let packages = split(&self.root.join(content))?;
            self.splits.insert(content.to_owned(), packages);
        }
        Ok(self
            .splits
            .get(content)
            .and_then(|packages| packages.get(name))
            .map_or(Lookup::Absent, |package| Lookup::Found(package.clone())))
    }

    fn large_package(&mut self, name: &str) -> anyhow::Result<Lookup> {
        if let Some(package) = self.large.get(name) {
            return Ok(Lookup::Found(package.clone()));
        }
        if self.folders.is_none() {
            self.folders = Some(folders(&self.root)?);
        }
        let Some(folders) = &self.folders else {
            return Ok(Lookup::Absent);
        };
        let Some(folder) = folders.by_package.get(name) else {
            // An incomplete catalog cannot prove that the package is absent.
            return Ok(match &folders.missing {
                Some(missing) => Lookup::Missing(missing.clone()),
                None => Lookup::Absent,
            });
        };
        let mut builder = PackageBuilder::new(name);
        for meta in metas(folder)? {
            builder.add(&meta?)?;
        }
        let package = Arc::new(builder.finish());
        self.large.insert(name.to_owned(), package.clone());
        Ok(Lookup::Found(package))
    }
}

/// Reads the packages of a split catalog.
fn split(file: &Path) -> anyhow::Result<Packages> {
    let mut builders: BTreeMap<String, PackageBuilder> = BTreeMap::new();
    for meta in decode(File::open(file)?, &Limits::default()) {
        let meta = meta?;
        let name = if meta.schema == olm_fbc::schema::PACKAGE {
            &meta.name
        } else {
            &meta.package
        };
        builders
            .entry(name.clone())
            .or_insert_with(|| PackageBuilder::new(name))
            .add(&meta)?;
    }
    Ok(builders
        .into_iter()
        .map(|(name, builder)| (name, Arc::new(builder.finish())))
        .collect())
}

/// Folders of the large catalog.
struct Folders {
    /// Folder of each package, which may have another name.
    by_package: BTreeMap<String, PathBuf>,
    /// First missing part; `None` if the catalog is complete.
    missing: Option<String>,
}

/// Folders into which the large catalog is divided.
const PARTS: [&str; 2] = ["medium", "rest"];

/// Returns the number of recorded folders of `part`.
fn recorded(part: &str) -> usize {
    if part == "medium" { 28 } else { 278 }
}

/// Returns the first missing folder of the large catalog below `root`.
pub(crate) fn missing(root: &Path, parts: &[&str]) -> Option<String> {
    let listed = std::fs::read(root.join("packages.json")).ok();
    let listed: Option<serde_json::Value> = listed.and_then(|text| serde_json::from_slice(&text).ok());
    let absent = |part: &&str| !root.join(part).is_dir();
    if let Some(part) = parts.iter().find(|part| absent(part)) {
        return Some(format!("catalogs/{part}"));
    }
    let names = |value: &serde_json::Value| match value {
        serde_json::Value::Object(members) => members.keys().cloned().collect(),
        serde_json::Value::Array(items) => items
            .iter()
            .filter_map(|item| Some(item.as_str()?.to_owned()))
            .collect(),
        _ => Vec::new(),
    };
    let key = if parts.len() == PARTS.len() {
        "source"
    } else {
        "medium"
    };
    let names: Vec<String> = listed
        .as_ref()
        .and_then(|listed| listed.get(key))
        .map(names)
        .unwrap_or_default();
    if listed.is_none() {
        // Without the list, the number of folders must match.
        let folders = |part: &str| std::fs::read_dir(root.join(part)).map_or(0, Iterator::count);
        let short = parts.iter().find(|part| folders(part) < recorded(part));
        return short.map(|part| format!("a part of catalogs/{part}"));
    }
    let there = |name: &String| parts.iter().any(|part| root.join(part).join(name).is_dir());
    names
        .into_iter()
        .find(|name| !there(name))
        .map(|name| format!("the folder {name} of the large catalog"))
}

/// Finds the folders of the large catalog below `root`, and its first missing part.
fn folders(root: &Path) -> anyhow::Result<Folders> {
    let mut folders = BTreeMap::new();
    for part in PARTS
        .map(|part| root.join(part))
        .iter()
        .filter(|part| part.exists())
    {
        for entry in std::fs::read_dir(part)? {
            let folder = entry?.path();
            for meta in metas(&folder)? {
                let meta = meta?;
                if meta.schema == olm_fbc::schema::PACKAGE {
                    folders.insert(meta.name, folder);
                    break;
                }
            }
        }
    }
    Ok(Folders {
        by_package: folders,
        missing: missing(root, &PARTS),
    })
}

/// Reads the metas of the files in `folder`, sorted by file name.
fn metas(folder: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Meta>> + use<>> {
    let mut files = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files
        .into_iter()
        .flat_map(|file| -> Box<dyn Iterator<Item = anyhow::Result<Meta>>> {
            match File::open(&file) {
                Ok(open) => Box::new(decode(open, &Limits::default()).map(|meta| Ok(meta?))),
                Err(error) => Box::new(std::iter::once(Err(error.into()))),
            }
        }))
}
