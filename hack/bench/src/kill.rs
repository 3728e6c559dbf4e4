//! Kills catalogd with `kill -9` at random moments while it unpacks catalogs. After each restart, it must serve the complete old
//! or new content. In the end, the disk must hold only the content that is served.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rand::Rng as _;

use crate::generate;
use crate::kernel::{digest, size_of};
use crate::load::Ask;
use crate::world::{Running, World};

/// Number of kills, size of the catalog, and programs.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The catalogd to kill.
    #[arg(long)]
    pub catalogd: PathBuf,
    /// Kills.
    #[arg(long, default_value_t = 200)]
    pub times: u32,
    /// Size of the catalog, in MB of JSON.
    #[arg(long, default_value_t = 20)]
    pub megabytes: u64,
    /// Time limit in seconds; the run ends earlier if it reaches the number of kills.
    #[arg(long)]
    pub seconds: Option<u64>,
}

/// Maximum wait for the last content after all kills.
const PATIENCE: Duration = Duration::from_mins(2);
/// Name of the catalog.
const NAME: &str = "killed";
const PATH: &str = "/catalogs/killed/api/v1/all";

/// Content of the catalog.
struct Content {
    /// Reference of the image by digest.
    image: String,
    /// Digest of the answer to `/all`.
    digest: String,
}

/// Kills catalogd again and again, and prints the totals.
///
/// # Errors
/// Fails if a response is missing or is neither of the two contents, or if the disk holds more than twice the content.
pub async fn run(options: Options) -> Result<()> {
    let work = tempfile::tempdir()?;
    let world = World::start().await?;
    let cache = work.path().join("cache");
    let mut contents = Vec::new();
    let mut running = world.catalogd(&options.catalogd, &cache, None).await?;
    let mut took = Duration::ZERO;
    let mut unpacked = 0;
    for version in ["a", "b"] {
        let source = work.path().join(version);
        generate::made_up(&source, options.megabytes * 1_000_000, 5_000)?;
        fs::write(
            source.join("version.json"),
            format!("{{\"schema\":\"version\",\"name\":\"{version}\"}}"),
        )?;
        unpacked = size_of(&source);
        let (_, image) = world.push(&source, &format!("bench/killed:{version}")).await?;
        let start = Instant::now();
        world.apply(NAME, &image, None).await?;
        world.serving(NAME, &image).await?;
        took = start.elapsed();
        let digest = digest_of(&running).await?;
        contents.push(Content { image, digest });
    }
    let [first, second] = contents.as_slice() else {
        bail!("two contents were made");
    };
    ensure!(first.digest != second.digest, "the contents are the same");
    let stored = size_of(&cache);
    // At rest, the disk holds the served generation. During unpacking, it also holds the image and the next generation.
    let allowed = 2 * (stored + unpacked);
    let (mut during, mut most, mut old, mut kills) = (0, 0, 0, 0);
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    for kill in 0..options.times {
        if options
            .seconds
            .is_some_and(|limit| start.elapsed().as_secs() >= limit)
        {
            break;
        }
        let (next, former) = if kill % 2 == 0 {
            (first, second)
        } else {
            (second, first)
        };
        world.apply(NAME, &next.image, None).await?;
        if kill % 3 == 0 {
            // With few kills, random moments alone could all miss the unpacking.
            let begun = async {
                while !unfinished(&cache) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let _missed = tokio::time::timeout(took * 2, begun).await;
        } else {
            let wait = took.mul_f64(rand::rng().random_range(0.0..1.1));
            tokio::time::sleep(wait).await;
        }
        running.kill()?;
        kills += 1;
        during += u32::from(unfinished(&cache));
        let size = size_of(&cache);
        most = most.max(size);
        ensure!(
            size <= allowed,
            "kill {kill}: {size} bytes on disk, {allowed} allowed"
        );

        running = world.catalogd(&options.catalogd, &cache, None).await?;
        slowest = slowest.max(running.ready_in);
        let digest = digest_of(&running).await?;
        ensure!(
            digest == next.digest || digest == former.digest,
            "kill {kill}: neither the one content nor the other"
        );
        old += u32::from(digest == former.digest);
    }
    // After all kills, catalogd must still serve new content.
    world.apply(NAME, &first.image, None).await?;
    world.serving(NAME, &first.image).await?;
    // catalogd may still be storing the content that was requested before the last kill. The requested content must follow, and
    // nothing else may stay on disk.
    let mut end = 0;
    olm_harness::eventually(PATIENCE, "the wanted content and nothing else", async || {
        ensure!(digest_of(&running).await? == first.digest, "other content");
        end = size_of(&cache);
        ensure!(
            end <= stored + stored / 20,
            "{end} bytes are on disk, {stored} are served"
        );
        Ok(())
    })
    .await?;
    ensure!(kills < 10 || during > 0, "no kill met catalogd at work");
    println!(
        "{kills} kills, {during} of them while something was being written; {old} times the former content was \
         found again, {} times the new one; slowest start {:.2} s; most on disk {} MB, {} MB served, {} MB at the end",
        kills - old,
        slowest.as_secs_f64(),
        most / 1_000_000,
        stored / 1_000_000,
        end / 1_000_000,
    );
    Ok(())
}

/// Reads the whole content and returns its digest.
async fn digest_of(running: &Running) -> Result<String> {
    let answer = running.target.get(&Ask::new(PATH)).await?;
    ensure!(answer.status == 200, "{} right after the start", answer.status);
    ensure!(!answer.body.is_empty(), "an empty answer");
    Ok(digest(&answer.body))
}

/// Returns true if a folder contains unfinished content.
fn unfinished(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with(".tmp-")
            || (entry.file_type().is_ok_and(|kind| kind.is_dir()) && unfinished(&entry.path()))
    })
}
