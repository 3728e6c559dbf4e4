//! Trouble of the disks with the programs' caches: full, read-only, corrupted.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use kube::api::DeleteParams;

use super::seen::{self, Which};
use super::{Trouble, reach};
use crate::{Scenario, Stage, World, kinds};

/// Mount options of a file system that is full after 16 KiB.
pub(super) const FULL: &str = "size=16k";
/// Mount options of a file system that refuses writes.
pub(super) const READ_ONLY: &str = "ro";
/// Shell script that mounts a file system in place of the cache and then becomes the program. It runs in a mount namespace of its
/// own, so nothing else sees the mount. Arguments: the cache, the mount options, and the command of the program.
const WRAPPER: &str = r#"mount -t tmpfs -o "$2" tmpfs "$1" && shift 2 && exec "$@""#;

/// Returns the reason why this machine cannot produce the trouble; `None` if it can.
pub(super) fn missing(trouble: Trouble) -> Option<String> {
    use Trouble as T;
    let mounts = [
        T::CatalogdDiskFull,
        T::ControllerDiskFull,
        T::CatalogdReadOnly,
        T::ControllerReadOnly,
    ];
    if !mounts.contains(&trouble) {
        return None;
    }
    let tried = std::process::Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("cannot run unshare: {error}")),
    }
}

/// Restarts a program with an empty file system in place of its cache.
fn mount(world: &mut World, which: Which, options: &str) -> Result<()> {
    let program = which.of(world);
    program.kill()?;
    let cache = program.cache().display().to_string();
    let words = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        WRAPPER,
        "sh",
        &cache,
        options,
    ];
    program.set_wrapper(words.map(str::to_owned).to_vec());
    program.spawn()
}

/// Restarts a program with its real cache.
async fn unmount(world: &mut World, which: Which) -> Result<()> {
    let program = which.of(world);
    program.kill()?;
    program.set_wrapper(Vec::new());
    program.start().await
}

/// Mounts a file system over the cache of catalogd, while it must store a new catalog.
pub(super) async fn catalogd_without_disk(
    world: &mut World,
    scenario: &mut Scenario,
    options: &str,
) -> Result<String> {
    mount(world, Which::Catalogd, options)?;
    let seen = seen::trouble(world, Which::Catalogd, kinds::CATALOG, &scenario.catalog()).await;
    unmount(world, Which::Catalogd).await?;
    scenario.perform(&world.client(), Stage::Install).await?;
    seen
}

/// Mounts a file system over the cache of operator-controller, while it must unpack a bundle.
pub(super) async fn controller_without_disk(
    world: &mut World,
    scenario: &mut Scenario,
    options: &str,
) -> Result<String> {
    mount(world, Which::Controller, options)?;
    scenario.perform(&world.client(), Stage::Install).await?;
    let seen = seen::trouble(world, Which::Controller, kinds::EXTENSION, &scenario.extension()).await;
    unmount(world, Which::Controller).await?;
    seen
}

/// Corrupts the cache of catalogd before an upgrade.
pub(super) async fn corrupt_catalogd(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    reach(world, scenario).await?;
    corrupt(world, Which::Catalogd).await?;
    scenario.perform(&world.client(), Stage::Upgrade).await?;
    let log = fs::read_to_string(world.catalogd.log())?;
    Ok(format!(
        "{} warnings of damaged content in the log",
        log.matches("cannot be used").count()
    ))
}

/// Corrupts the cache of operator-controller, and deletes the revision, so that the bundle in the cache is needed again.
pub(super) async fn corrupt_controller(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    reach(world, scenario).await?;
    corrupt(world, Which::Controller).await?;
    let revisions = kinds::REVISION.all(&world.client());
    revisions
        .delete(&format!("{}-1", scenario.extension()), &DeleteParams::default())
        .await?;
    let found = seen::condition(&world.client(), kinds::EXTENSION, &scenario.extension()).await?;
    Ok(found.unwrap_or_else(|| "nothing".to_owned()))
}

/// Restarts a program with a wrong bit in every file of its cache.
async fn corrupt(world: &mut World, which: Which) -> Result<()> {
    let program = which.of(world);
    program.kill()?;
    let files = flip_bits(program.cache())?;
    ensure!(files > 0, "the cache has no files");
    eprintln!("{files} files have a wrong bit");
    program.start().await
}

/// Flips one bit in the middle of every file in the folder. Returns the number of changed files.
fn flip_bits(folder: &Path) -> Result<u32> {
    let mut files = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            files += flip_bits(&path)?;
        } else if metadata.is_file() {
            let mut bytes = fs::read(&path)?;
            let middle = bytes.len() / 2;
            if let Some(byte) = bytes.get_mut(middle) {
                *byte ^= 1;
                fs::remove_file(&path)?;
                fs::write(&path, bytes)?;
                files += 1;
            }
        }
    }
    Ok(files)
}
