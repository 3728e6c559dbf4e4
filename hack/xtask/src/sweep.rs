//! Sweeps over bundle folders, for the chores `render-hash`, `render-loss` and `plans`: finds the folders, renders them on all
//! cores, and delivers the outcomes in the order of the folders.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::Context as _;
use clap::ValueEnum;
use olm_bundle::{Certificates, RenderOptions, parse, render};
use serde_json::Value;

/// Bundles to render, and options of the renderer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bundle folders (those that hold `manifests` and `metadata`), or folders of such at any depth.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Install namespace.
    #[arg(long, default_value = "olm-test")]
    namespace: String,
    /// Provider of the certificates of webhooks.
    #[arg(long, value_enum, default_value_t = Issuer::CertManager)]
    certificates: Issuer,
    /// `spec.config.inline` as JSON.
    #[arg(long, value_name = "JSON", value_parser = json)]
    config: Option<Value>,
    /// Accept also bundles that do not support `AllNamespaces` (upstream's gate `SingleOwnNamespaceInstallSupport`). `plans` always
    /// does.
    #[arg(long)]
    single_own_namespace: bool,
    /// Accept the field `deploymentConfig` of the configuration (upstream's gate `DeploymentConfig`).
    #[arg(long)]
    deployment_config: bool,
}

/// Providers of certificates.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Issuer {
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// No issuer: bundles with webhooks are refused.
    None,
}

/// Files of a bundle, by path in the bundle's folder.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Reason why a folder has no rendered objects.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The parser or the renderer refuses the bundle.
    Refused(String),
    /// The folder cannot be read, or the renderer panicked.
    Unreadable(String),
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Args {
    /// Returns the bundle folders at or below the given folders.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for dir in &self.dirs {
            find(dir, &mut folders);
        }
        folders
    }

    /// Returns the options of the renderer.
    pub(crate) fn options(&self) -> RenderOptions {
        let mut options = RenderOptions::new(self.namespace.clone());
        options.config.clone_from(&self.config);
        options.single_own_namespace = self.single_own_namespace;
        options.deployment_config = self.deployment_config;
        options.certificates = match self.certificates {
            Issuer::CertManager => Certificates::CertManager,
            Issuer::ServiceCa => Certificates::ServiceCa,
            Issuer::None => Certificates::None,
        };
        options
    }
}

/// Adds the bundle folders at or below `dir`, sorted by name. If there is none, adds `dir` itself, so that every argument has an
/// outcome.
pub(crate) fn find(dir: &Path, into: &mut Vec<PathBuf>) {
    let before = into.len();
    walk(dir, 0, into);
    if into.len() == before {
        into.push(dir.to_owned());
    }
}

/// Maximum depth of a bundle folder. Symbolic links are followed, so the search must end in a cycle, too.
const MAX_DEPTH: usize = 12;

/// Adds the folders at or below `dir` that have a folder `manifests`.
fn walk(dir: &Path, depth: usize, into: &mut Vec<PathBuf>) {
    if dir.join("manifests").is_dir() {
        return into.push(dir.to_owned());
    }
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| depth < MAX_DEPTH && path.is_dir())
        .collect();
    folders.sort();
    for folder in folders {
        walk(&folder, depth + 1, into);
    }
}

/// Calls `work` for all `folders` on all cores, and writes the lines that `lines` returns for the outcomes, in the order of the
/// folders. The sweep ends early, without an error, if the reader has closed the pipe, as `| head` does.
///
/// # Errors
/// The lines cannot be written.
pub(crate) fn print<T: Send>(
    out: impl Write,
    folders: &[PathBuf],
    work: impl Fn(&Path) -> T + Sync,
    mut lines: impl FnMut(&Path, T) -> String,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    let mut written = Ok(());
    sweep(folders, work, |folder, outcome| {
        if written.is_ok() {
            written = out.write_all(lines(folder, outcome).as_bytes());
        }
        written.is_ok()
    });
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write the lines"),
    }
}

/// Calls `work` for all `folders` on all cores. `each` gets the outcomes in the order of the folders; it returns false to end the
/// sweep.
pub(crate) fn sweep<T: Send>(
    folders: &[PathBuf],
    work: impl Fn(&Path) -> T + Sync,
    mut each: impl FnMut(&Path, T) -> bool,
) {
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(workers * 64);
    thread::scope(|scope| {
        for _ in 0..workers.min(folders.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(folder) = folders.get(at) else { break };
                    // The receiver has ended.
                    if sender.send((at, work(folder))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (at, outcome) in receiver {
            early.insert(at, outcome);
            while let Some(outcome) = early.remove(&due) {
                let go_on = folders.get(due).is_some_and(|folder| each(folder, outcome));
                due += 1;
                if !go_on {
                    next.store(folders.len(), Ordering::Relaxed);
                }
            }
        }
    });
}

/// Returns the files of the bundle in `folder` and its rendered objects.
pub(crate) fn render_folder(folder: &Path, options: &RenderOptions) -> Result<(Files, Vec<Value>), Failure> {
    if !folder.is_dir() {
        return Err(Failure::Unreadable("there is no such folder".to_owned()));
    }
    let files = olm_bundle_files::read(folder)
        .map_err(|error| Failure::Unreadable(format!("{:#}", anyhow::Error::new(error))))?;
    // A panic of the renderer is a defect to report, but must not end the sweep.
    let objects = catch_unwind(AssertUnwindSafe(|| {
        let bundle = parse(&files).map_err(|error| Failure::Refused(error.to_string()))?;
        render(&bundle, options).map_err(|error| Failure::Refused(error.to_string()))
    }));
    let panicked = || Failure::Unreadable("rendering panicked; this is a defect".to_owned());
    let objects = objects.map_err(|_| panicked())??;
    Ok((files, objects))
}

/// Returns `text` for a field of a line, with backslashes, line feeds and tabs escaped.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_ends_the_lines_without_an_error() {
        let folders = ["a", "b"].map(PathBuf::from);
        let work = |folder: &Path| folder.display().to_string();
        let mut out = Vec::new();
        print(&mut out, &folders, work, |_, name| format!("{name}\n")).unwrap();
        assert_eq!(out, b"a\nb\n");
        let to = |kind| print(Broken(kind), &folders, work, |_, name| name);
        to(io::ErrorKind::BrokenPipe).unwrap();
        to(io::ErrorKind::StorageFull).unwrap_err();
    }
}
