//! `cargo xtask render-hash DIR...`: what bundles render to, in one line each, for sweeps over thousands of them.
//!
//! A line is `FOLDER<tab>COUNT<tab>SHA256`, in the order of the folders given: the number of objects, and the SHA-256
//! of their canonical JSON, sorted bytewise and joined by line feeds. A bundle that is refused has the line
//! `FOLDER<tab>refused<tab>REASON`, a folder that cannot be read `FOLDER<tab>error<tab>REASON`; line feeds in a reason are
//! written `\\n`. Exit status: 0 when every folder has its hash or its refusal, 1 when a folder could not be read, 2 for
//! wrong usage.

use std::io::{self, BufWriter, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use olm_bundle::{Certificates, RenderOptions, list_hash, parse, render};
use serde_json::Value;

/// What is rendered, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bundle folders (those that hold `manifests` and `metadata`), or folders of such at any depth.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// The namespace to install to.
    #[arg(long, default_value = "olm-test")]
    namespace: String,
    /// Who makes the certificates of webhooks.
    #[arg(long, value_enum, default_value_t = Issuer::CertManager)]
    certificates: Issuer,
    /// `spec.config.inline` as JSON.
    #[arg(long, value_name = "JSON", value_parser = json)]
    config: Option<Value>,
    /// Take bundles that do not support `AllNamespaces`, too (upstream's gate `SingleOwnNamespaceInstallSupport`).
    #[arg(long)]
    single_own_namespace: bool,
    /// Know the field `deploymentConfig` of the configuration (upstream's gate `DeploymentConfig`).
    #[arg(long)]
    deployment_config: bool,
}

/// Who makes certificates.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Issuer {
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// Nobody: bundles with webhooks are refused.
    None,
}

/// What came of one folder.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Rendered { count: usize, hash: String },
    Refused(String),
    Unreadable(String),
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Args {
    fn options(&self) -> RenderOptions {
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

/// Prints the line of every bundle; fails when a folder could not be read.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut folders = Vec::new();
    for dir in &args.dirs {
        find(dir, &mut folders);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let mut unreadable = 0_usize;
    let mut written = Ok(());
    sweep(&folders, &args.options(), |folder, outcome| {
        unreadable += usize::from(matches!(outcome, Outcome::Unreadable(_)));
        let line = outcome.line(folder);
        written = out.write_all(line.as_bytes());
        written.is_ok()
    });
    match written.and_then(|()| out.flush()) {
        // Whoever reads has seen enough, as with `| head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        result => result.context("cannot write the lines")?,
    }
    if unreadable > 0 {
        bail!("{unreadable} of {} folders could not be read", folders.len());
    }
    Ok(())
}

impl Outcome {
    fn line(&self, folder: &Path) -> String {
        let escape = |text: &str| {
            text.replace('\\', "\\\\")
                .replace('\n', "\\n")
                .replace('\t', "\\t")
        };
        let folder = folder.display();
        match self {
            Self::Rendered { count, hash } => format!("{folder}\t{count}\t{hash}\n"),
            Self::Refused(reason) => format!("{folder}\trefused\t{}\n", escape(reason)),
            Self::Unreadable(reason) => format!("{folder}\terror\t{}\n", escape(reason)),
        }
    }
}

/// The bundles at or below `dir`, by name. A folder without any is one itself: it has an answer, too.
fn find(dir: &Path, into: &mut Vec<PathBuf>) {
    let before = into.len();
    walk(dir, 0, into);
    if into.len() == before {
        into.push(dir.to_owned());
    }
}

/// Deep enough for any collection; links to folders are followed, so there has to be an end.
const MAX_DEPTH: usize = 12;

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

/// Renders all `folders` on all cores; `each` gets the outcomes in the folders' order, and says whether to go on.
fn sweep(folders: &[PathBuf], options: &RenderOptions, mut each: impl FnMut(&Path, Outcome) -> bool) {
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(workers * 64);
    thread::scope(|scope| {
        for _ in 0..workers.min(folders.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(folder) = folders.get(at) else { break };
                    // Whoever received has gone.
                    if sender.send((at, outcome(folder, options))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = std::collections::BTreeMap::new();
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

fn outcome(folder: &Path, options: &RenderOptions) -> Outcome {
    // A bundle that breaks the renderer is a defect to see, and no reason to lose the rest of the sweep.
    let caught = catch_unwind(AssertUnwindSafe(|| one(folder, options)));
    caught.unwrap_or_else(|_| Outcome::Unreadable("rendering panicked; this is a defect".to_owned()))
}

fn one(folder: &Path, options: &RenderOptions) -> Outcome {
    if !folder.is_dir() {
        return Outcome::Unreadable("there is no such folder".to_owned());
    }
    let files = match olm_bundle_files::read(folder) {
        Ok(files) => files,
        Err(error) => return Outcome::Unreadable(format!("{:#}", anyhow::Error::new(error))),
    };
    let bundle = match parse(&files) {
        Ok(bundle) => bundle,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    match render(&bundle, options) {
        Ok(objects) => Outcome::Rendered {
            count: objects.len(),
            hash: list_hash(&objects),
        },
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(dirs: &[&Path], options: &RenderOptions) -> Vec<(PathBuf, Outcome)> {
        let mut folders = Vec::new();
        for dir in dirs {
            find(dir, &mut folders);
        }
        let mut out = Vec::new();
        sweep(&folders, options, |folder, outcome| {
            out.push((folder.to_owned(), outcome));
            true
        });
        out
    }

    #[test]
    fn folders_of_bundles_and_none_at_all() {
        let root = crate::shell::root();
        let options = RenderOptions {
            certificates: Certificates::CertManager,
            ..RenderOptions::new("olm-test")
        };
        let found = lines(
            &[
                &root.join("test/testdata/sample-operator"),
                Path::new("/no/such"),
                &root.join("docs"),
            ],
            &options,
        );
        let kinds: Vec<&str> = found
            .iter()
            .map(|(_, outcome)| match outcome {
                Outcome::Rendered { .. } => "rendered",
                Outcome::Refused(_) => "refused",
                Outcome::Unreadable(_) => "unreadable",
            })
            .collect();
        assert_eq!(
            kinds,
            ["rendered", "rendered", "rendered", "unreadable", "refused"]
        );
        assert!(found[0].0.ends_with("1.0.0") && found[2].0.ends_with("2.0.0"));
        assert_eq!(
            found[4].1.line(Path::new("docs")),
            "docs\trefused\topen metadata/annotations.yaml: no such file or directory\n"
        );
        assert_eq!(
            Outcome::Refused("a\nb".to_owned()).line(Path::new("x")),
            "x\trefused\ta\\nb\n"
        );
    }

    /// Every recorded case without a configuration, its hash made from the recorded objects.
    #[test]
    fn recorded_bundles_have_the_recorded_hashes() {
        let Some(vectors) = std::env::var_os("OLM_VECTORS") else {
            eprintln!("OLM_VECTORS is not set: the recorded bundles are not rendered");
            return;
        };
        let root = Path::new(&vectors).join("render");
        let mut compared = 0;
        for entry in std::fs::read_dir(&root).into_iter().flatten() {
            let folder = entry.unwrap().path();
            let (Ok(cases), Ok(objects)) = (
                std::fs::read(folder.join("cases.json")),
                std::fs::read_to_string(folder.join("objects.jsonl")),
            ) else {
                continue;
            };
            let cases: Value = serde_json::from_slice(&cases).unwrap();
            let store: std::collections::BTreeMap<String, Value> = objects
                .lines()
                .map(|line| {
                    let mut row: Value = serde_json::from_str(line).unwrap();
                    (row["sha256"].as_str().unwrap().to_owned(), row["object"].take())
                })
                .collect();
            for case in cases["cases"].as_array().unwrap() {
                let wanted = case["objects"].as_array().map(|list| {
                    let objects = list.iter().filter_map(|object| object["sha256"].as_str());
                    objects
                        .filter_map(|sha| store.get(sha).cloned())
                        .collect::<Vec<_>>()
                });
                let options = RenderOptions {
                    certificates: match case["certProvider"].as_str() {
                        Some("cert-manager") => Certificates::CertManager,
                        Some("openshift-service-ca") => Certificates::ServiceCa,
                        _ => Certificates::None,
                    },
                    config: case["config"]
                        .as_str()
                        .map(|text| serde_json::from_str(text).unwrap()),
                    single_own_namespace: case["singleOwnNamespace"] == true,
                    deployment_config: case["deploymentConfigGate"] == true,
                    ..RenderOptions::new(cases["installNamespace"].as_str().unwrap())
                };
                let Some(wanted) = wanted else { continue };
                assert_eq!(
                    outcome(&folder.join("bundle"), &options),
                    Outcome::Rendered {
                        count: wanted.len(),
                        hash: list_hash(&wanted)
                    },
                    "{} {}",
                    folder.display(),
                    case["case"]
                );
                compared += 1;
            }
        }
        assert!(compared > 0, "no case in {}", root.display());
    }
}
