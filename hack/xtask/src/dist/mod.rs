//! `cargo xtask dist`: writes all files of a release to one folder.
//!
//! Equal inputs give equal bytes: times come from `SOURCE_DATE_EPOCH`, entries of archives are sorted, and paths of the machine
//! are replaced. The inputs are the sources, the toolchain, and the public certificate authorities of the machine, which the
//! images contain.

mod archive;
mod binaries;
mod changelog;
mod images;
mod krew;
mod manifests;
mod release;
mod sbom;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use self::binaries::{Binaries, Place};
use self::release::Release;
use crate::shell;

pub(crate) use self::binaries::architectures;
pub(crate) use self::sbom::documents as bills_of_materials;

/// Name of the file with the checksums.
const SUMS: &str = "SHA256SUMS";
/// Registry and path of the images, if the command line names none.
const IMAGE_PREFIX: &str = "olmv1";

/// Arguments of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of the release; by default `dist` below cargo's target directory. Existing content is removed.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Version of the release; by default the workspace's.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Folder of static binaries for linux/amd64, instead of a compilation.
    #[arg(long)]
    bin_dir: Option<PathBuf>,
    /// Registry and path of the images in the manifests, without the name of the component.
    #[arg(long, default_value = IMAGE_PREFIX)]
    image_prefix: String,
    /// URL below which the files of the release will be, for the manifest of krew.
    #[arg(long)]
    download_url: Option<String>,
    /// Make the release twice, and fail if the two differ. The second one is compiled from a copy of the sources in another folder, with
    /// nothing of the first one; with --bin-dir, both are of the same binaries.
    #[arg(long)]
    check: bool,
}

impl Args {
    /// Returns the folder of the release.
    fn out(&self) -> PathBuf {
        self.out
            .clone()
            .unwrap_or_else(|| shell::target_dir().join("dist"))
    }
}

/// Writes a release.
#[expect(clippy::print_stdout, reason = "the checksums are this chore's result")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let sums = make(args)?;
    print!("{}", lines(&sums));
    eprintln!("the release is in {}", args.out().display());
    Ok(())
}

/// Makes a release twice, compares the two, and returns the names of all files.
pub(crate) fn twice() -> anyhow::Result<Vec<String>> {
    let args = Args {
        out: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        bin_dir: None,
        image_prefix: IMAGE_PREFIX.to_owned(),
        download_url: None,
        check: true,
    };
    Ok(make(&args)?.into_keys().collect())
}

/// Writes a release, makes it again if `args` want this, and returns the digests of its files by name.
fn make(args: &Args) -> anyhow::Result<BTreeMap<String, String>> {
    let release = Release::new(args)?;
    let one = |out: &Path, place: fn() -> anyhow::Result<Place>| {
        if let Some(folder) = &args.bin_dir {
            return write(out, &release, &Binaries::existing(folder)?);
        }
        // The folders of the compilation stay until the binaries are in the release.
        let place = place()?;
        write(out, &release, &Binaries::compile(&release, &place)?)
    };
    let out = args.out();
    let sums = one(&out, || Ok(Place::here()))?;
    if args.check {
        let second = out.with_extension("second");
        let again = one(&second, Place::elsewhere)?;
        compare(&sums, &again).with_context(|| format!("see {} and {}", out.display(), second.display()))?;
        fs::remove_dir_all(&second).with_context(|| format!("cannot remove {}", second.display()))?;
        eprintln!("{} files are equal in two runs", sums.len());
    }
    Ok(sums)
}

/// Writes all files to an empty folder, and returns their digests by name. The folder of an earlier release is emptied before.
fn write(out: &Path, release: &Release, binaries: &Binaries) -> anyhow::Result<BTreeMap<String, String>> {
    if out.exists() {
        // A folder with other content belongs to somebody, so it is not removed.
        ensure!(
            out.join(SUMS).exists() || fs::read_dir(out)?.next().is_none(),
            "{} exists and holds no release: name another folder by --out",
            out.display()
        );
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    // The file marks the folder, so that a later run may remove the files of a failed one.
    fs::write(out.join(SUMS), "")?;
    binaries.archive(out, release)?;
    let digests = images::write(out, release, binaries)?;
    manifests::write(out, release, &digests)?;
    sbom::write(out, release)?;
    changelog::write(out, release)?;
    krew::write(out, release, binaries)?;
    let sums = sums(out)?;
    fs::write(out.join(SUMS), lines(&sums))?;
    Ok(sums)
}

/// Returns the SHA-256 of each file in the folder, except the file with the checksums.
fn sums(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != SUMS {
            sums.insert(name, sha256(&entry.path())?);
        }
    }
    Ok(sums)
}

/// Returns the SHA-256 of a file as hexadecimal text.
fn sha256(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// Returns the checksums in the format of `sha256sum --check`.
fn lines(sums: &BTreeMap<String, String>) -> String {
    sums.iter().fold(String::new(), |lines, (name, sum)| {
        lines + sum + "  " + name + "\n"
    })
}

/// Fails if the checksums of two releases differ, and names the files.
fn compare(first: &BTreeMap<String, String>, second: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let different: Vec<&str> = first
        .keys()
        .chain(second.keys())
        .filter(|name| first.get(*name) != second.get(*name))
        .map(String::as_str)
        .collect();
    ensure!(
        different.is_empty(),
        "two runs differ in {}",
        different.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_are_named() {
        let first = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        compare(&first, &first.clone()).unwrap();
        let mut second = first.clone();
        second.insert("b".to_owned(), "3".to_owned());
        let error = compare(&first, &second).unwrap_err().to_string();
        assert!(error.starts_with("two runs differ in b"), "{error}");
        assert_eq!(lines(&first), "1  a\n2  b\n");
    }
}
