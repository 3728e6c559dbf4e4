//! Vectors of the phases of revisions: their names, the order of their objects, and the digests of the objects.
//!
//! The input of a case is its recorded rendered objects. If their content is not recorded, only the order is compared, on objects
//! that have only names. `docs/deviations.md` lists the cases with CRDs of an old API version, which this project passes on
//! unchanged, with their number. Everything else must be equal.

use std::collections::BTreeMap;
use std::path::Path;

use data_encoding::HEXLOWER;
use olm_applier::plan::{self, CommonMetadata};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Report, deviations};

const OLD_CRD: &str = "apiextensions.k8s.io/v1beta1/CustomResourceDefinition";
const NEW_CRD: &str = "apiextensions.k8s.io/v1/CustomResourceDefinition";

/// A case of rendering. `same` names another case with the same objects.
#[derive(Deserialize)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    #[serde(default)]
    objects: Option<Vec<Entry>>,
    #[serde(rename = "sameObjectsAs")]
    same: Option<String>,
}

/// An object, as the recording names it.
#[derive(Clone, Deserialize, PartialEq)]
struct Entry {
    gvk: String,
    #[serde(default)]
    namespace: String,
    name: String,
    sha256: String,
}

#[derive(Deserialize)]
struct Phase {
    name: String,
    objects: Vec<Entry>,
}

/// The content of a recorded object.
#[derive(Deserialize)]
struct Stored {
    sha256: String,
    object: Value,
}

/// Runs every `revision-*` entry in the recorded renderings of `dir`.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("revision");
    let dir = if dir.join("render").is_dir() {
        dir.join("render")
    } else {
        dir.to_owned()
    };
    let mut folders: Vec<_> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    folders.sort();
    for folder in folders
        .iter()
        .filter(|folder| folder.join("cases.json").is_file())
    {
        if let Err(error) = bundle(folder, &mut report) {
            report.count(Some(format!("{}: {error:#}", folder.display())));
        }
    }
    report
}

/// Runs the cases of a bundle.
fn bundle(folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    let listed = deviations::listed("revision");
    let file: Value = serde_json::from_slice(&std::fs::read(folder.join("cases.json"))?)?;
    let cases: Vec<Case> = serde_json::from_value(file.get("cases").cloned().unwrap_or(json!([])))?;
    let mut store = BTreeMap::new();
    if let Ok(text) = std::fs::read_to_string(folder.join("objects.jsonl")) {
        for line in text.lines() {
            let stored: Stored = serde_json::from_str(line)?;
            store.insert(stored.sha256, stored.object);
        }
    }
    for case in ["default", "singleown-own"] {
        let Some(phases) = file.get(format!("revision-{case}")).and_then(|r| r.get("phases")) else {
            continue;
        };
        if phases.is_null() {
            continue;
        }
        let mut phases: Vec<Phase> = serde_json::from_value(phases.clone())?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let id = format!("{name}/revision-{case}");
        let Some(rendered) = rendered(&cases, case) else {
            report.skip("the rendered objects of the same case");
            continue;
        };
        let kept = keep_old_crds(&rendered, &mut phases);
        let difference = compare(&rendered, &phases, &store);
        let ours = format!("{kept} kept");
        match (kept, listed.get(id.as_str()), difference) {
            (0, None, difference) => report.count(difference.map(|difference| format!("{id}: {difference}"))),
            (1.., Some(stated), None) if *stated == ours => {
                report.cases += 1;
                report.deviating += 1;
            }
            (_, stated, difference) => report.count(Some(format!(
                "{id}: {ours}, listed as {stated:?}; beside that {difference:?}"
            ))),
        }
    }
    Ok(())
}

/// Replaces upstream's converted CRDs in `phases` by the rendered CRDs of an old API version. Returns their number.
fn keep_old_crds(rendered: &[Entry], phases: &mut [Phase]) -> usize {
    let mut kept = 0;
    for old in rendered.iter().filter(|entry| entry.gvk == OLD_CRD) {
        let mut wanted = phases.iter_mut().flat_map(|phase| &mut phase.objects);
        if let Some(wanted) = wanted.find(|entry| entry.gvk == NEW_CRD && entry.name == old.name) {
            old.gvk.clone_into(&mut wanted.gvk);
            kept += 1;
        }
    }
    kept
}

/// Returns the recorded objects of a case; `None` if they are not recorded.
fn rendered(cases: &[Case], name: &str) -> Option<Vec<Entry>> {
    let case = cases.iter().find(|case| case.name == name)?;
    match (&case.objects, &case.same) {
        (Some(objects), _) => Some(objects.clone()),
        (None, Some(same)) => cases.iter().find(|case| case.name == *same)?.objects.clone(),
        _ => None,
    }
}

/// Divides the rendered objects into phases and returns the first difference from the recorded ones, if any.
fn compare(rendered: &[Entry], want: &[Phase], store: &BTreeMap<String, Value>) -> Option<String> {
    let objects: Vec<Value> = rendered
        .iter()
        .map(|entry| {
            store.get(&entry.sha256).cloned().unwrap_or_else(|| {
                let (api_version, kind) = entry.gvk.rsplit_once('/').unwrap_or(("", &entry.gvk));
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": entry.name, "namespace": entry.namespace},
                    "not-recorded": true})
            })
        })
        .collect();
    let got = plan::phases(objects, &stamp());
    // Unlike upstream, this project splits a phase with too many objects.
    let base = |name: &str| match name.rsplit_once('-') {
        Some((head, number)) if number.parse::<u32>().is_ok() => head.to_owned(),
        _ => name.to_owned(),
    };
    let got: Vec<(String, &Value)> = got
        .iter()
        .flat_map(|p| p.objects.iter().map(move |o| (base(&p.name), o)))
        .collect();
    let want: Vec<(&str, &Entry)> = want
        .iter()
        .flat_map(|p| p.objects.iter().map(move |o| (p.name.as_str(), o)))
        .collect();
    if got.len() != want.len() {
        return Some(format!("{} objects instead of {}", got.len(), want.len()));
    }
    for ((phase, object), (want_phase, entry)) in got.iter().zip(&want) {
        let meta = |key: &str| {
            object
                .pointer(&format!("/metadata/{key}"))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let gvk = format!(
            "{}/{}",
            object
                .get("apiVersion")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            object.get("kind").and_then(Value::as_str).unwrap_or_default()
        );
        let place = (phase.as_str(), gvk.as_str(), meta("namespace"), meta("name"));
        let want_place = (
            *want_phase,
            entry.gvk.as_str(),
            entry.namespace.as_str(),
            entry.name.as_str(),
        );
        if place != want_place {
            return Some(format!("{place:?} instead of {want_place:?}"));
        }
        if object.get("not-recorded").is_none() && gvk != OLD_CRD && digest(object) != entry.sha256 {
            return Some(format!("{place:?} has other content: {object}"));
        }
    }
    None
}

/// Returns the labels and annotations that all objects of the recorded revisions have.
fn stamp() -> CommonMetadata {
    let map = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    };
    CommonMetadata {
        labels: map(&[
            ("olm.operatorframework.io/owner-kind", "ClusterExtension"),
            ("olm.operatorframework.io/owner-name", "oracle-ext"),
        ]),
        annotations: map(&[
            ("olm.operatorframework.io/bundle-version", "1.0.0"),
            ("olm.operatorframework.io/package-name", "oracle-pkg"),
        ]),
    }
}

/// Returns the SHA-256 of the object in the recorded form: sorted keys, no white space, HTML not escaped.
fn digest(object: &Value) -> String {
    HEXLOWER.encode(&Sha256::digest(olm_bundle::canonical_json(object)))
}
