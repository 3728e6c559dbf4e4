//! The recorded catalogs, read once and only as far as they are asked for.

use olm_fbc::{Limits, Meta, PackageBuilder, PackageContent, decode};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Packages by name; none for one that is not there.
type Packages = BTreeMap<String, Arc<PackageContent>>;

/// What a recorded catalog has of a package.
pub(crate) enum Lookup {
    Found(Arc<PackageContent>),
    /// It does not have it.
    Absent,
    /// The recording is not here, or only in part; this is missing.
    Missing(String),
}

/// The catalogs below one folder.
pub(crate) struct Catalogs {
    root: PathBuf,
    /// Split catalogs by path, read whole.
    splits: BTreeMap<String, Packages>,
    /// Folders of the large catalog by package.
    folders: Option<Folders>,
    /// Packages of the large catalog read so far.
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

    /// A package of the catalog `content`: `large`, or a file of split metas.
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
            // In a part of the catalog nobody knows whether the whole has it.
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

/// The packages of a file that holds several.
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

/// The large catalog.
struct Folders {
    /// The folder of each package: not always named after it.
    by_package: BTreeMap<String, PathBuf>,
    /// The first part that is not here; none when it is whole.
    missing: Option<String>,
}

const PARTS: [&str; 2] = ["medium", "rest"];

/// How many folders `part` was recorded with.
fn recorded(part: &str) -> usize {
    if part == "medium" { 28 } else { 278 }
}

/// The first folder of the large catalog below `root` that should be there and is not.
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
        // Without the list, as many folders as were recorded.
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

/// The metas of the files in `folder`, by the names of the files.
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
