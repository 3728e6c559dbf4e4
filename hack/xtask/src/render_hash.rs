//! `cargo xtask render-hash DIR...`: renders bundles and prints a hash of the objects, one line for each bundle. A sweep can
//! cover thousands of bundles.
//!
//! A line is `FOLDER<tab>COUNT<tab>SHA256`, in the order of the given folders. COUNT is the number of objects. SHA256 is the hash
//! of their canonical JSON, sorted bytewise and joined by line feeds. A refused bundle has the line
//! `FOLDER<tab>refused<tab>REASON`, and a folder that cannot be read `FOLDER<tab>error<tab>REASON`. Line feeds in a reason are
//! written `\\n`. Exit status: 0 if every folder has a hash or a refusal, 1 if a folder could not be read, 2 for wrong usage.

use std::io;
use std::path::Path;

use anyhow::bail;
use olm_bundle::{RenderOptions, list_hash};

use crate::sweep::{self, Args, Failure};

/// Result for one folder.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Rendered { count: usize, hash: String },
    Refused(String),
    Unreadable(String),
}

/// Prints the line of every bundle, and fails if a folder could not be read.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folders = args.folders();
    let options = args.options();
    let mut unreadable = 0_usize;
    let work = |folder: &Path| outcome(folder, &options);
    sweep::print(io::stdout().lock(), &folders, work, |folder, outcome| {
        unreadable += usize::from(matches!(outcome, Outcome::Unreadable(_)));
        outcome.line(folder)
    })?;
    if unreadable > 0 {
        bail!("{unreadable} of {} folders could not be read", folders.len());
    }
    Ok(())
}

impl Outcome {
    fn line(&self, folder: &Path) -> String {
        let folder = folder.display();
        match self {
            Self::Rendered { count, hash } => format!("{folder}\t{count}\t{hash}\n"),
            Self::Refused(reason) => format!("{folder}\trefused\t{}\n", sweep::escape(reason)),
            Self::Unreadable(reason) => format!("{folder}\terror\t{}\n", sweep::escape(reason)),
        }
    }
}

fn outcome(folder: &Path, options: &RenderOptions) -> Outcome {
    match sweep::render_folder(folder, options) {
        Ok((_, objects)) => Outcome::Rendered {
            count: objects.len(),
            hash: list_hash(&objects),
        },
        Err(Failure::Refused(reason)) => Outcome::Refused(reason),
        Err(Failure::Unreadable(reason)) => Outcome::Unreadable(reason),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use olm_bundle::Certificates;
    use serde_json::Value;

    use super::*;

    /// Recorded bundles of which upstream renders objects that no API server accepts. The differential suite of rendering compares
    /// theirs, with each deviation.
    const MENDED: [&str; 2] = [
        "synthetic--webhook-existing-cert-volumes",
        "synthetic--webhook-no-ports",
    ];

    fn lines(dirs: &[&Path], options: &RenderOptions) -> Vec<(PathBuf, Outcome)> {
        let mut folders = Vec::new();
        for dir in dirs {
            sweep::find(dir, &mut folders);
        }
        let mut out = Vec::new();
        let work = |folder: &Path| outcome(folder, options);
        sweep::sweep(&folders, work, |folder, outcome| {
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

    /// Compares the hash of every recorded case with the hash of its recorded objects.
    #[test]
    fn recorded_bundles_have_the_recorded_hashes() {
        let Some(vectors) = std::env::var_os("OLM_VECTORS") else {
            writeln!(
                io::stderr(),
                "SKIPPED: OLM_VECTORS is not set, so no recorded bundle was rendered"
            )
            .unwrap();
            return;
        };
        let root = Path::new(&vectors).join("render");
        let mut compared = 0;
        for entry in std::fs::read_dir(&root).into_iter().flatten() {
            let folder = entry.unwrap().path();
            if MENDED.iter().any(|name| folder.ends_with(name)) {
                continue;
            }
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
