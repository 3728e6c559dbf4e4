//! Programs of the control plane: found, or built from `hack/controlplane`.
//!
//! One Go program acts as all components, by its name. It is stored below the target directory under the hash of its
//! sources, so that it is built once; concurrent processes wait at a file lock. Programs in `KUBEBUILDER_ASSETS`
//! take precedence.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::process::Spawn;
use crate::workspace;

const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "registry"];
const SOURCES: [&str; 3] = ["main.go", "go.mod", "go.sum"];
const PROGRAM: &str = "controlplane";
/// kubectl and version checks parse the reported version, so the build sets it.
const LDFLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";
/// Exit status of the shell for a missing program.
const NOT_FOUND: i32 = 127;
const UNFINISHED: &str = "unfinished-";
const PROGRESS: Duration = Duration::from_secs(10);

/// Paths of the components' programs.
#[derive(Clone, Debug)]
pub struct Assets {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub apiserver: PathBuf,
    /// kube-controller-manager.
    pub controller_manager: PathBuf,
    /// The OCI registry.
    pub registry: PathBuf,
}

impl Assets {
    /// Finds the programs and builds missing ones, which takes minutes the first time; progress goes to stderr.
    /// Blocking: async code calls [`Assets::get`].
    ///
    /// # Errors
    /// A program is missing and cannot be built; the message names it and the remedy.
    pub fn find_or_build() -> Result<Self> {
        let given = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        Self::with(given.as_deref())
    }

    /// Variant of [`Assets::find_or_build`] on a blocking thread.
    ///
    /// # Errors
    /// Those of [`Assets::find_or_build`].
    pub async fn get() -> Result<Self> {
        tokio::task::spawn_blocking(Self::find_or_build)
            .await
            .context("the build's thread ended")?
    }

    fn with(given: Option<&Path>) -> Result<Self> {
        let given_path = |name: &str| given.map(|dir| dir.join(name)).filter(|path| path.is_file());
        let missing: Vec<&str> = COMPONENTS
            .into_iter()
            .filter(|name| given_path(name).is_none())
            .collect();
        let built = if missing.is_empty() {
            PathBuf::new()
        } else {
            ensure_built(&missing)?
        };
        let path = |name: &str| given_path(name).unwrap_or_else(|| built.join(name));
        let [etcd, apiserver, controller_manager, registry] = COMPONENTS.map(path);
        Ok(Self {
            etcd,
            apiserver,
            controller_manager,
            registry,
        })
    }
}

/// Returns the directory with the built program and a link to it for each component.
fn ensure_built(missing: &[&str]) -> Result<PathBuf> {
    let sources = workspace::root().join("hack").join(PROGRAM);
    let cache = workspace::target_dir().join(PROGRAM);
    let dir = cache.join(hash_of(&sources)?);
    if is_complete(&dir) {
        return Ok(dir);
    }
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let lock_path = cache.join(".lock");
    let lock = File::create(&lock_path).with_context(|| format!("cannot create {}", lock_path.display()))?;
    if lock.try_lock().is_err() {
        eprintln!("control plane: another process is building it, waiting");
        lock.lock()
            .with_context(|| format!("cannot lock {}", lock_path.display()))?;
    }
    if is_complete(&dir) {
        return Ok(dir);
    }
    // This process holds the lock, so these directories belong to killed processes.
    for entry in fs::read_dir(&cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let unfinished = || tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&cache);
    let logs = unfinished().with_context(|| format!("cannot write to {}", cache.display()))?;
    let work = unfinished().with_context(|| format!("cannot write to {}", cache.display()))?;
    build(&sources, &work.path().join(PROGRAM), logs.path(), missing)?;
    for name in COMPONENTS {
        symlink(PROGRAM, work.path().join(name)).with_context(|| format!("cannot link {name}"))?;
    }
    // An incomplete directory belongs to an interrupted process.
    let _ = fs::remove_dir_all(&dir);
    fs::rename(work.path(), &dir).with_context(|| format!("cannot move the build to {}", dir.display()))?;
    Ok(dir)
}

fn is_complete(dir: &Path) -> bool {
    COMPONENTS.iter().all(|name| dir.join(name).is_file())
}

fn hash_of(sources: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    for name in SOURCES {
        let path = sources.join(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        hash.update(name.as_bytes());
        hash.update(bytes.len().to_le_bytes());
        hash.update(&bytes);
    }
    hash.update(LDFLAGS.as_bytes());
    Ok(HEXLOWER.encode(&hash.finalize()))
}

fn build(sources: &Path, output: &Path, logs: &Path, missing: &[&str]) -> Result<()> {
    let started = Instant::now();
    eprintln!(
        "control plane: building {} with go (minutes the first time, then cached)",
        missing.join(", ")
    );
    // No -trimpath: it would not share the cache with other builds of these modules on the machine.
    let mut go = Spawn::new("go", "go")
        .args(["build", "-buildvcs=false", "-ldflags", LDFLAGS, "-o"])
        .arg(output)
        .arg(".")
        .directory(sources)
        .spawn(logs)?;
    let mut reported = Instant::now();
    let status = loop {
        if let Some(status) = go.exited() {
            break status;
        }
        if reported.elapsed() >= PROGRESS {
            reported = Instant::now();
            eprintln!("control plane: still building, {} s", started.elapsed().as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if status.code() == Some(NOT_FOUND) {
        bail!(
            "the control plane's {} {} missing and go is not on the PATH to build them: install Go 1.26 or newer, \
             or set KUBEBUILDER_ASSETS to a directory that holds them",
            missing.join(", "),
            if missing.len() == 1 { "is" } else { "are" },
        );
    }
    if !status.success() {
        bail!("go build of hack/controlplane failed ({status})\n{}", go.tail(40));
    }
    eprintln!("control plane: built in {} s", started.elapsed().as_secs());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_assets_win_and_need_no_build() {
        let dir = tempfile::tempdir().unwrap();
        for name in COMPONENTS {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let assets = Assets::with(Some(dir.path())).unwrap();
        assert_eq!(assets.registry, dir.path().join("registry"));
        assert_eq!(assets.etcd, dir.path().join("etcd"));
    }
}
