//! The recorded catalogs, read once and only as far as they are asked for.

use olm_fbc::{Limits, Meta, PackageBuilder, PackageContent, decode};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Packages by name; none for one that is not there.
type Packages = BTreeMap<String, Arc<PackageContent>>;

/// The catalogs below one folder.
pub(crate) struct Catalogs {
    root: PathBuf,
    /// Split catalogs by path, read whole.
    splits: BTreeMap<String, Packages>,
    /// Folders of the large catalog by package.
    folders: Option<BTreeMap<String, PathBuf>>,
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
    pub(crate) fn package(
        &mut self,
        content: &str,
        name: &str,
    ) -> anyhow::Result<Option<Arc<PackageContent>>> {
        if content == "large" {
            return self.large_package(name);
        }
        if !self.splits.contains_key(content) {
            let packages = split(&self.root.join(content))?;
            self.splits.insert(content.to_owned(), packages);
        }
        Ok(self
            .splits
            .get(content)
            .and_then(|packages| packages.get(name))
            .cloned())
    }

    fn large_package(&mut self, name: &str) -> anyhow::Result<Option<Arc<PackageContent>>> {
        if let Some(package) = self.large.get(name) {
            return Ok(Some(package.clone()));
        }
        if self.folders.is_none() {
            self.folders = Some(folders(&self.root)?);
        }
        let Some(folder) = self.folders.as_ref().and_then(|folders| folders.get(name)) else {
            return Ok(None);
        };
        let mut builder = PackageBuilder::new(name);
        for meta in metas(folder)? {
            builder.add(&meta?)?;
        }
        let package = Arc::new(builder.finish());
        self.large.insert(name.to_owned(), package.clone());
        Ok(Some(package))
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

/// The folder of each package of the large catalog: not always named after it.
fn folders(root: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut folders = BTreeMap::new();
    for part in ["medium", "rest"]
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
    Ok(folders)
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
