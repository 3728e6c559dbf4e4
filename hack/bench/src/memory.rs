//! Test that catalogd unpacks and serves a catalog far larger than the memory that it may use.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::generate;
use crate::kernel::{digest, size_of};
use crate::load::{Answer, Ask};
use crate::world::{Running, World};

/// Size of the catalog and of the memory.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The catalogd to measure, a release build.
    #[arg(long)]
    catalogd: PathBuf,
    /// Size of the catalog, in MB of JSON.
    #[arg(long, default_value_t = 500)]
    megabytes: u64,
    /// Size of one object, in bytes. Small ones make a large index.
    #[arg(long, default_value_t = 20_000)]
    object: usize,
    /// A real catalog instead, its packages repeated under other names until they have `--megabytes`.
    #[arg(long)]
    catalog: Option<PathBuf>,
    /// Memory limit of catalogd, in MiB.
    #[arg(long, default_value_t = 96)]
    cap: u64,
}

/// Lets catalogd unpack and serve the catalog, restarts it, and lets it serve again.
///
/// # Errors
/// Fails if catalogd used more memory than the cap, ended, or served wrong content.
pub async fn run(options: Options) -> Result<()> {
    let work = tempfile::tempdir()?;
    let source = work.path().join("source");
    let wanted = options.megabytes * 1_000_000;
    let content = if let Some(catalog) = &options.catalog {
        let once = work.path().join("once");
        generate::cloned(catalog, &once, 1)?;
        let times = wanted.div_ceil(size_of(&once).max(1));
        generate::cloned(catalog, &source, u32::try_from(times)?)?;
        format!("{}, its packages {times} times", catalog.display())
    } else {
        generate::made_up(&source, wanted, options.object)?;
        format!("objects of about {} bytes", options.object)
    };
    println!("catalog: {} MB of JSON, {content}", size_of(&source) / 1_000_000);
    let asks = asks(&source)?;
    let world = World::start().await?;
    let (_, digest) = world.push(&source, "bench/large:v1").await?;
    fs::remove_dir_all(&source)?;
    let cage = Cage::new(work.path(), options.cap)?;
    println!("cap: {} MiB by {}", options.cap, cage.how);
    let cache = work.path().join("cache");
    let running = world
        .catalogd(&options.catalogd, &cache, Some(&cage.wrapper))
        .await?;
    println!("idle: VmRSS {} KiB", running.kernel.kib("VmRSS")?);

    let start = Instant::now();
    world.apply("large", &digest, None).await?;
    world.serving("large", &digest).await?;
    println!("create to Serving: {:.1} s", start.elapsed().as_secs_f64());
    report("after unpacking", &running)?;

    serve(&running, &asks).await?;
    report("after serving", &running)?;
    println!("on disk: {} MB", size_of(&cache) / 1_000_000);
    drop(running);

    let running = world
        .catalogd(&options.catalogd, &cache, Some(&cage.wrapper))
        .await?;
    println!("restart to ready: {:.2} s", running.ready_in.as_secs_f64());
    serve(&running, &asks).await?;
    report("after a restart and serving", &running)?;
    cage.report();
    ensure!(
        running.kernel.kib("VmHWM")? < options.cap * 1024,
        "more than the cap was used"
    );
    Ok(())
}

/// Returns queries of the catalog in a folder, each with the number of objects that answer it: for a bundle, for the objects of
/// its package, for those that are called like the package, and for a package that does not exist.
fn asks(source: &Path) -> Result<Vec<(String, usize)>> {
    let (mut packages, mut names) = (BTreeMap::new(), BTreeMap::new());
    let mut bundle = None;
    generate::each_meta(source, |meta| {
        *packages.entry(meta.package.clone()).or_default() += 1;
        *names.entry(meta.name.clone()).or_default() += 1;
        if meta.schema == "olm.bundle" {
            bundle.get_or_insert((meta.package, meta.name));
        }
    })?;
    let (package, name) = bundle.context("the catalog has no bundle")?;
    let count = |counts: &BTreeMap<String, usize>| counts.get(&package).copied().unwrap_or_default();
    Ok(vec![
        (format!("schema=olm.bundle&package={package}&name={name}"), 1),
        (format!("package={package}"), count(&packages)),
        (format!("name={package}"), count(&names)),
        ("package=nothing".to_owned(), 0),
    ])
}

/// Checks the served content: the whole catalog by its digest, and the number of objects that answer each query.
async fn serve(running: &Running, asks: &[(String, usize)]) -> Result<()> {
    let all = running
        .target
        .get(&Ask::new("/catalogs/large/api/v1/all"))
        .await?;
    ensure!(all.status == 200, "{}", all.status);
    check_digest(&all)?;
    for (query, metas) in asks {
        let answer = running
            .target
            .get(&Ask::new(format!("/catalogs/large/api/v1/metas?{query}")))
            .await?;
        let lines = answer.body.split(|byte| *byte == b'\n').count() - 1;
        ensure!(
            answer.status == 200 && lines == *metas,
            "{query}: {} with {lines} lines instead of {metas}",
            answer.status
        );
    }
    println!(
        "served: /all ({} bytes, digest right), /metas by index",
        all.length
    );
    Ok(())
}

/// Fails unless the header of the answer has the digest of its body.
fn check_digest(answer: &Answer) -> Result<()> {
    let wanted = answer
        .headers
        .get("olm-content-digest")
        .context("the answer has no Olm-Content-Digest")?;
    let digest = digest(&answer.body);
    ensure!(
        wanted.as_bytes() == digest.as_bytes(),
        "the content is {digest}, not {wanted:?}"
    );
    Ok(())
}

/// Prints the kernel's statistics about catalogd.
fn report(when: &str, running: &Running) -> Result<()> {
    let kernel = running.kernel;
    println!(
        "{when}: VmHWM {} KiB, VmRSS {} KiB, of these anonymous {} KiB, {} threads, {:.1} s CPU",
        kernel.kib("VmHWM")?,
        kernel.kib("VmRSS")?,
        kernel.kib("RssAnon")?,
        kernel.threads()?,
        kernel.cpu()?.as_secs_f64(),
    );
    Ok(())
}

/// A memory limit: a cgroup, or `prlimit` if no cgroup can be created.
struct Cage {
    /// Script that starts catalogd under the limit.
    wrapper: PathBuf,
    /// Description of the limit.
    how: String,
    /// Folder of the cgroup.
    group: Option<PathBuf>,
}

impl Cage {
    fn new(work: &Path, mib: u64) -> Result<Self> {
        let bytes = mib * 1024 * 1024;
        let name = format!("olm-bench-{}", std::process::id());
        let groups = [
            (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
            (Path::new("/sys/fs/cgroup"), "memory.max"),
        ];
        let mut group = None;
        for (root, file) in groups {
            let path = root.join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }
            if fs::write(path.join(file), bytes.to_string()).is_ok() {
                group = Some((path, file));
                break;
            }
            let _ = fs::remove_dir(&path);
        }
        let (enter, how) = match &group {
            Some((path, file)) => (
                format!(
                    "echo $$ > '{0}/cgroup.procs' && exec \"$OLM_BENCH_PROGRAM\" \"$@\"",
                    path.display()
                ),
                format!("cgroup {file} (counts the page cache, which the kernel takes back)"),
            ),
            None => (
                format!("exec prlimit --data={bytes} \"$OLM_BENCH_PROGRAM\" \"$@\""),
                "prlimit --data (cgroups cannot be written here)".to_owned(),
            ),
        };
        let wrapper = work.join("capped");
        fs::write(&wrapper, format!("#!/bin/sh\n{enter}\n"))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&wrapper, mode).context("cannot make the wrapper executable")?;
        Ok(Self {
            wrapper,
            how,
            group: group.map(|(path, _)| path),
        })
    }

    /// Prints the kernel's statistics about the cgroup.
    fn report(&self) {
        let Some(group) = &self.group else { return };
        for file in [
            "memory.max_usage_in_bytes",
            "memory.peak",
            "memory.oom_control",
            "memory.events",
        ] {
            if let Ok(text) = fs::read_to_string(group.join(file)) {
                println!("{file}: {}", text.trim().replace('\n', ", "));
            }
        }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            let _ = fs::remove_dir(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    #[test]
    fn an_answer_has_the_digest_of_its_body() {
        let body = b"{}".to_vec();
        let check = |header: Option<String>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert("olm-content-digest", HeaderValue::from_str(&header).unwrap());
            }
            check_digest(&Answer {
                status: StatusCode::OK,
                headers,
                body: body.clone(),
                length: 2,
            })
        };
        assert!(check(Some(digest(&body))).is_ok());
        assert!(check(Some(digest(b"[]"))).is_err());
        assert!(check(None).is_err());
    }
}
