//! The rows of docs/benchmarks.md about catalogd.

mod serving;
mod unpacking;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::generate;
use crate::world::World;

/// Options of the measurement.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The catalogd to measure, a release build.
    #[arg(long)]
    pub catalogd: PathBuf,
    /// A real catalog: the folder that is x1.
    #[arg(long)]
    pub catalog: PathBuf,
    /// Seconds of load for each row.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Also measure two polls, which takes two minutes.
    #[arg(long)]
    pub polls: bool,
}

/// Measures everything and prints it as a table.
///
/// # Errors
/// Fails if something cannot be measured, for example if a response is not the expected one.
pub async fn run(options: Options) -> Result<()> {
    let work = tempfile::tempdir()?;
    let world = World::start(&options.catalogd).await?;
    let binary = fs::metadata(&options.catalogd)?.len();
    println!("| work | figure |\n|---|---|");
    row("binary", &format!("{} MB", megabytes(binary)));
    let mut catalogs = Vec::new();
    for times in [1, 15] {
        let folder = work.path().join(format!("x{times}"));
        generate::cloned(&options.catalog, &folder, times)?;
        catalogs.push((format!("x{times}"), folder));
    }
    // Another x15, which is unpacked while reads go on.
    let other = work.path().join("other");
    generate::cloned(&options.catalog, &other, 15)?;
    fs::write(other.join("other.json"), r#"{"schema":"other","name":"other"}"#)?;

    let cache = work.path().join("cache");
    let running = unpacking::run(&world, &cache, &catalogs).await?;
    let sample = Sample::of(&options.catalog)?;
    let time = Duration::from_secs(options.seconds);
    serving::run(&running, &sample, time).await?;
    serving::while_unpacking(&world, &running, &sample, &other).await?;
    if options.polls {
        unpacking::polls(&world, &running).await?;
    }
    Ok(())
}

fn row(work: &str, figure: &str) {
    println!("| {work} | {figure} |");
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

/// Names to ask for in a catalog.
struct Sample {
    /// Package and name of bundles of about 35 kB.
    bundles: Vec<(String, String)>,
    /// The package whose bundles are about 1.4 MB.
    package: String,
}

impl Sample {
    fn of(catalog: &Path) -> Result<Self> {
        let mut bundles: Vec<(u64, String, String)> = Vec::new();
        let mut packages: BTreeMap<String, u64> = BTreeMap::new();
        let mut folders = vec![catalog.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let Ok(file) = File::open(&path) else { continue };
                for meta in olm_fbc::decode(file, &olm_fbc::Limits::default()).flatten() {
                    if meta.schema == "olm.bundle" {
                        let length = meta.blob.len() as u64;
                        *packages.entry(meta.package.clone()).or_default() += length;
                        bundles.push((length.abs_diff(35_000), meta.package, meta.name));
                    }
                }
            }
        }
        bundles.sort();
        let package = packages
            .into_iter()
            .min_by_key(|(_, length)| length.abs_diff(1_400_000))
            .context("the catalog has no bundles")?;
        Ok(Self {
            bundles: bundles
                .into_iter()
                .take(16)
                .map(|(_, package, name)| (package, name))
                .collect(),
            package: package.0,
        })
    }
}
