//! `site`: catalogs as static web pages.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use olm_text::counted;
use olm_ui::{CatalogView, File, Site};
use serde_json::json;

use crate::cli::site::SiteArgs;
use crate::failure::Failure;
use crate::lifecycle;
use crate::report::Report;
use crate::source::Sources;

/// Writes the pages of the catalogs into a directory.
pub(crate) async fn run(args: SiteArgs) -> Result<Report, Failure> {
    check_vacant(&args.dir)?;
    let mut catalogs = Vec::new();
    for catalog in Sources::of_words(&args.catalogs, &args.access).await?.catalogs {
        let packages = catalog.profiles().await?;
        catalogs.push(CatalogView::new(catalog.name, packages));
    }
    let site = Site::new(&catalogs, lifecycle::today())
        .map_err(|error| Failure::NegativeAnswer(error.to_string()))?;
    let (mut files, mut bytes) = (0, 0);
    for file in site.files() {
        let path = args.dir.join(&file.path);
        write(&path, &file).map_err(|error| unwritable(&path, &error))?;
        files += 1;
        bytes += file.bytes.len();
    }
    let packages: usize = catalogs.iter().map(|catalog| catalog.packages().len()).sum();
    let text = format!(
        "wrote {} about {} to {}\n",
        counted(files, "file"),
        counted(packages, "package"),
        args.dir.display()
    );
    let value = json!({"directory": args.dir, "catalogs": catalogs.len(), "packages": packages, "files": files, "bytes": bytes});
    Ok(Report::new(value, text))
}

/// Checks that the directory is absent or empty: files of others stay as they are, and a site has no pages of a former one.
///
/// # Errors
/// The directory has files, or cannot be read.
fn check_vacant(dir: &Path) -> Result<(), Failure> {
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Usage(format!(
            "{} is not empty: name a new directory for the site",
            dir.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unwritable(dir, &error)),
    }
}

/// Writes a new file with its folders.
fn write(path: &PathBuf, file: &File) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut out = OpenOptions::new().write(true).create_new(true).open(path)?;
    out.write_all(&file.bytes)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::NegativeAnswer(format!("cannot write {}: {error}", path.display()))
}
