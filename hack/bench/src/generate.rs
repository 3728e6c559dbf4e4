//! Generator of catalogs of any size: synthetic ones, or a real one with its packages repeated.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use olm_fbc::Meta;
use serde_json::{Value, json};

/// Number of bundles in a synthetic package.
const BUNDLES: u64 = 20;
/// Number of packages in one file.
const PACKAGES: u64 = 200;

/// Writes a synthetic catalog below `target`: about `bytes` bytes of JSON in objects of about `meta` bytes. Equal arguments give
/// equal bytes.
///
/// # Errors
/// Fails if the folder cannot be written.
pub fn made_up(target: &Path, bytes: u64, meta: usize) -> Result<()> {
    let mut words = Words::default();
    let (mut written, mut package) = (0, 0);
    while written < bytes {
        let folder = target.join(format!("part-{:04}", package / PACKAGES));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut file = create(&folder.join("catalog.json"))?;
        for _ in 0..PACKAGES {
            if written >= bytes {
                break;
            }
            for meta in package_of(package, meta, &mut words) {
                let text = serde_json::to_string(&meta)?;
                writeln!(file, "{text}")?;
                written += text.len() as u64 + 1;
            }
            package += 1;
        }
        file.flush()?;
    }
    Ok(())
}

/// Returns the objects of the package with this number, whose bundles have about `size` bytes each.
fn package_of(number: u64, size: usize, words: &mut Words) -> Vec<Value> {
    let package = format!("made-up-{number:07}");
    let bundle = |version: u64| format!("{package}.v{version}.0.0");
    let entries: Vec<Value> = (0..BUNDLES)
        .map(|version| match version {
            0 => json!({"name": bundle(0)}),
            _ => json!({"name": bundle(version), "replaces": bundle(version - 1)}),
        })
        .collect();
    let mut metas = vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}),
    ];
    for version in 0..BUNDLES {
        metas.push(json!({
            "schema": "olm.bundle", "package": package, "name": bundle(version),
            "image": format!("registry.example/{package}@sha256:{:064x}", number * BUNDLES + version),
            "properties": [
                {"type": "olm.package", "value": {"packageName": package, "version": format!("{version}.0.0")}},
                {"type": "olm.csv.metadata", "value": {"description": words.text(size.saturating_sub(300))}},
            ],
        }));
    }
    metas
}

/// Generator of text that compresses about as well as descriptions.
pub(crate) struct Words(u64);

impl Default for Words {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Words {
    /// Returns a text of at least `bytes` bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            // A linear congruential generator suffices: the text need not be random, but must be the same in every run.
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = self.0 >> 33;
            text.push_str("operator-");
            let _ = write!(text, "{:x} ", word % 4096);
        }
        text
    }
}

/// Writes the catalog in the folder `source` `times` times below `target`, as indented JSON. Each copy has other names of
/// packages.
///
/// # Errors
/// Fails if the catalog cannot be read or the folder cannot be written.
pub fn cloned(source: &Path, target: &Path, times: u32) -> Result<()> {
    let mut files = Vec::new();
    find(source, &mut files)?;
    files.sort();
    if files.is_empty() {
        bail!("no catalog below {}", source.display());
    }
    for time in 0..times {
        for (number, path) in files.iter().enumerate() {
            let folder = target.join(format!("{number:03}-{time:03}"));
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
            let mut file = create(&folder.join("catalog.json"))?;
            for meta in metas(path)? {
                let mut value: Value = serde_json::from_slice(&meta?.blob)?;
                if time > 0 {
                    rename(&mut value, &format!("-copy{time}"));
                }
                serde_json::to_writer_pretty(&mut file, &value)?;
                file.write_all(b"\n")?;
            }
            file.flush()?;
        }
    }
    Ok(())
}

/// Passes each object of the catalog in a folder to `each`.
///
/// # Errors
/// Fails if the catalog cannot be read.
pub(crate) fn each_meta(folder: &Path, mut each: impl FnMut(Meta)) -> Result<()> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    for path in files {
        for meta in metas(&path)? {
            each(meta?);
        }
    }
    Ok(())
}

/// Returns the objects of a file of a catalog.
fn metas(path: &Path) -> Result<impl Iterator<Item = Result<Meta>>> {
    let source = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let metas = olm_fbc::decode(source, &olm_fbc::Limits::default());
    Ok(metas.map(move |meta| meta.with_context(|| format!("in {}", path.display()))))
}

/// Appends the suffix to the name of the package wherever the object has it.
fn rename(meta: &mut Value, suffix: &str) {
    let key = if meta["schema"] == "olm.package" {
        "name"
    } else {
        "package"
    };
    let append = |value: &mut Value| {
        if let Value::String(text) = value {
            text.push_str(suffix);
        }
    };
    if let Some(value) = meta.get_mut(key) {
        append(value);
    }
    for property in meta
        .get_mut("properties")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if property["type"] == "olm.package"
            && let Some(name) = property.pointer_mut("/value/packageName")
        {
            append(name);
        }
    }
}

/// Adds the files of a catalog below `folder`, by their endings.
fn find(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|end| end == "json" || end == "yaml" || end == "jsonl")
        {
            files.push(path);
        }
    }
    Ok(())
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}
