//! `kill -9` at any moment leaves the old content or the new, whole, and nothing else for long.

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
    /// Stop after so many seconds, when that comes before the number of kills.
    #[arg(long)]
    pub seconds: Option<u64>,
}

const PATIENCE: Duration = Duration::from_mins(2);
const NAME: &str = "killed";
const PATH: &str = "/catalogs/killed/api/v1/all";

/// Content of a catalog: its image, and the digest of the answer to `/all`.
struct Content {
    image: String,
    digest: String,
}

/// Kills; an error says what was not whole.
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
    // At rest: what is served. While unpacking also the image and the next generation.
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
            // Random moments alone can all miss the work when there are few.
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
    // And it goes on from there.
    world.apply(NAME, &first.image, None).await?;
    world.serving(NAME, &first.image).await?;
    // It may still be at what was wanted when it was killed; then comes what is wanted now, and nothing else stays.
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

async fn digest_of(running: &Running) -> Result<String> {
    let answer = running.target.get(&Ask::new(PATH)).await?;
    ensure!(answer.status == 200, "{} right after the start", answer.status);
    ensure!(!answer.body.is_empty(), "an empty answer");
    Ok(digest(&answer.body))
}

/// Returns true if a folder holds unfinished content.
fn unfinished(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with(".tmp-")
            || (entry.file_type().is_ok_and(|kind| kind.is_dir()) && unfinished(&entry.path()))
    })
}
