//! The group `catalogd` of the report: unpacking of catalogs, restarts, and reads under load.

mod serving;
mod unpacking;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::generate;
use crate::report::bench::Bench;

/// Size of one object in a synthetic catalog, in bytes: that of a typical bundle.
const OBJECT: usize = 35_000;

/// Options of the group `catalogd`.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(id = "catalogd")]
pub struct Options {
    /// Folder with a real catalog, which is x1 of the groups catalogd and catalogs; by default one is made up.
    #[arg(long)]
    pub catalog: Option<PathBuf>,
    /// Seconds of load for each row of reads; by default as --scale says.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Also measure two polls, which takes two minutes.
    #[arg(long)]
    pub polls: bool,
}

/// Measures catalogd with a catalog, called x1, and with a large one that repeats its packages, called x15 at full scale.
pub(crate) async fn run(bench: &mut Bench, options: &Options) -> Result<()> {
    let work = tempfile::tempdir()?;
    bench.add_program("binary", "catalogd")?;
    let source = &source(bench, options, work.path())?;
    let large = Large::new(bench.scale.repeats);
    let mut catalogs = Vec::new();
    for (name, times) in [("x1".to_owned(), 1), (large.name.clone(), large.times)] {
        let folder = work.path().join(&name);
        generate::cloned(source, &folder, times)?;
        catalogs.push((name, folder));
    }
    // Another large catalog, which is unpacked while reads go on.
    let other = work.path().join("other");
    generate::cloned(source, &other, large.times)?;
    fs::write(other.join("other.json"), r#"{"schema":"other","name":"other"}"#)?;

    unpacking::run(bench, &catalogs).await?;
    let time = options.seconds.map_or(bench.scale.load, Duration::from_secs);
    if let Some(content) = bench.subject.content(&bench.stage).await? {
        let sample = Sample::of(source)?;
        serving::run(bench, &content, &sample, &large.name, time).await?;
        serving::while_unpacking(bench, &content, &sample, &other, time).await?;
    }
    if options.polls {
        unpacking::polls(bench, &catalogs).await?;
    }
    for (name, _) in &catalogs {
        bench.stage.world.delete(name).await?;
    }
    Ok(())
}

/// Returns the folder of the catalog x1: the real one, or a synthetic one that is written below `work`.
pub(crate) fn source(bench: &Bench, options: &Options, work: &Path) -> Result<PathBuf> {
    if let Some(catalog) = &options.catalog {
        return Ok(catalog.clone());
    }
    let made_up = work.join("source");
    generate::made_up(&made_up, bench.scale.megabytes * 1_000_000, OBJECT)?;
    Ok(made_up)
}

/// The large catalog, which repeats the small one.
struct Large {
    name: String,
    times: u32,
}

impl Large {
    fn new(times: u32) -> Self {
        Self {
            name: format!("x{times}"),
            times,
        }
    }
}

/// Names of objects in a catalog to request.
struct Sample {
    /// Packages and names of 16 bundles, those whose sizes are nearest to 35 kB.
    bundles: Vec<(String, String)>,
    /// Package whose bundles have together the size nearest to 1.4 MB.
    package: String,
}

impl Sample {
    /// Chooses the names from the catalog in a folder.
    fn of(catalog: &Path) -> Result<Self> {
        let mut bundles: Vec<(u64, String, String)> = Vec::new();
        let mut packages: BTreeMap<String, u64> = BTreeMap::new();
        generate::each_meta(catalog, |meta| {
            if meta.schema == "olm.bundle" {
                let length = meta.blob.len() as u64;
                *packages.entry(meta.package.clone()).or_default() += length;
                bundles.push((length.abs_diff(35_000), meta.package, meta.name));
            }
        })?;
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
