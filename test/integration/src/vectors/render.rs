//! Rendering of recorded registry+v1 bundles.
//!
//! A bundle has a folder with its files, the options of every case, and the recorded objects or error. Objects are
//! compared by kind, namespace, name and the hash of their canonical JSON, as multisets: upstream's order is partly
//! random. `docs/deviations.md` lists the cases with objects that are mended, with their number.

use std::collections::BTreeMap;
use std::path::Path;

use data_encoding::HEXLOWER;
use olm_bundle::{Certificates, ParseError, RenderError, RenderOptions};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Report, deviations, mended};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    bundle: String,
    install_namespace: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    #[serde(rename = "case")]
    name: String,
    cert_provider: String,
    single_own_namespace: bool,
    deployment_config_gate: bool,
    config: Option<String>,
    error: Option<String>,
    #[serde(default)]
    error_variants: Vec<String>,
    objects: Option<Vec<Object>>,
    same_objects_as: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    gvk: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    sha256: String,
}

/// Runs every bundle below `dir/render`.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("render");
    let listed = deviations::listed("render");
    let mut folders: Vec<_> = std::fs::read_dir(dir.join("render"))
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    folders.sort();
    for folder in folders {
        let file = folder.join("cases.json");
        if !file.exists() {
            continue;
        }
        match std::fs::read(&file)
            .map_err(anyhow::Error::from)
            .and_then(|text| Ok(serde_json::from_slice(&text)?))
        {
            Ok(cases) => bundle(&folder, &cases, &listed, &mut report),
            Err(error) => report.wrong.push(format!("{}: {error}", file.display())),
        }
    }
    report
}

fn bundle(folder: &Path, recorded: &Recorded, listed: &BTreeMap<&str, &str>, report: &mut Report) {
    if !folder.join("bundle").is_dir() {
        report.skip(format!("render/{}/bundle", recorded.bundle));
        return;
    }
    let files = match olm_bundle_files::read(&folder.join("bundle")) {
        Ok(files) => files,
        Err(error) => {
            report.wrong.push(format!("{}: {error}", recorded.bundle));
            return;
        }
    };
    let parsed = olm_bundle::parse(&files);
    let id = |case: &Case| format!("{}/{}", recorded.bundle, case.name);
    // Contents matter only where a difference is listed.
    let deviates = recorded
        .cases
        .iter()
        .any(|case| listed.contains_key(id(case).as_str()));
    let store = if deviates {
        mended::recorded(folder)
    } else {
        Ok(BTreeMap::new())
    };
    let store = match store {
        Ok(store) => store,
        Err(error) => {
            report.wrong.push(format!("{}: {error}", recorded.bundle));
            return;
        }
    };
    let mut by_case: BTreeMap<&str, &[Object]> = BTreeMap::new();
    for case in &recorded.cases {
        if let Some(objects) = &case.objects {
            by_case.insert(&case.name, objects);
        }
    }
    for case in &recorded.cases {
        if case
            .same_objects_as
            .as_deref()
            .is_some_and(|other| !by_case.contains_key(other))
        {
            report.skip("the case that holds the answer");
            continue;
        }
        let ours = answer(&parsed, &recorded.install_namespace, case);
        // Upstream leaves the validation of names to the API server: this project must not refuse valid ones.
        let refused = ours
            .as_ref()
            .ok()
            .and_then(|objects| olm_api::names::check_all(objects.iter()).err());
        if let Some(fault) = refused {
            report
                .wrong
                .push(format!("{} {}: {fault}", recorded.bundle, case.name));
        }
        let expected = case
            .objects
            .as_deref()
            .or_else(|| by_case.get(case.same_objects_as.as_deref()?).copied())
            // The recording omits empty lists of objects.
            .or_else(|| case.same_objects_as.is_none().then_some(&[][..]));
        let difference = difference(case, expected, ours, &store);
        let id = id(case);
        let answer = difference.clone().unwrap_or_default();
        report.count_listed(&id, difference, &answer, listed.get(id.as_str()).copied());
    }
}

fn answer(
    parsed: &Result<olm_bundle::Bundle, ParseError>,
    namespace: &str,
    case: &Case,
) -> Result<Vec<Value>, String> {
    let bundle = parsed.as_ref().map_err(ToString::to_string)?;
    let mut options = RenderOptions::new(namespace);
    options.single_own_namespace = case.single_own_namespace;
    options.deployment_config = case.deployment_config_gate;
    options.certificates = match case.cert_provider.as_str() {
        "cert-manager" => Certificates::CertManager,
        "openshift-service-ca" => Certificates::ServiceCa,
        _ => Certificates::None,
    };
    options.config = match &case.config {
        None => None,
        Some(text) => Some(serde_json::from_str(text).map_err(|error| error.to_string())?),
    };
    olm_bundle::render(bundle, &options).map_err(|error| upstream_text(&error))
}

/// Adds upstream's prefix of errors that require a change of the spec.
fn upstream_text(error: &RenderError) -> String {
    if error.terminal() {
        format!("terminal error: {error}")
    } else {
        error.to_string()
    }
}

fn difference(
    case: &Case,
    expected: Option<&[Object]>,
    ours: Result<Vec<Value>, String>,
    store: &BTreeMap<String, Value>,
) -> Option<String> {
    match (ours, &case.error, expected) {
        (Err(ours), Some(error), _) => {
            let equal = ours == *error || case.error_variants.contains(&ours);
            (!equal).then(|| format!("error is {ours:?}, not {error:?}"))
        }
        (Err(ours), None, _) => Some(format!("unexpected error {ours:?}")),
        (Ok(_), Some(error), _) => Some(format!("rendered, not refused with {error:?}")),
        (Ok(_), None, None) => Some("the case has neither objects nor an error".to_owned()),
        (Ok(ours), None, Some(expected)) => objects_difference(&ours, expected, store),
    }
}

fn objects_difference(
    ours: &[Value],
    expected: &[Object],
    store: &BTreeMap<String, Value>,
) -> Option<String> {
    let mut expected = expected.to_vec();
    let mut extra = Vec::new();
    for object in ours {
        let object = identify(object);
        match expected.iter().position(|other| *other == object) {
            Some(at) => drop(expected.swap_remove(at)),
            None => extra.push(object),
        }
    }
    let mut mends: BTreeMap<&str, usize> = BTreeMap::new();
    expected.retain(|recorded| {
        let mended = store.get(&recorded.sha256).and_then(mended::mended);
        let ours = mended.and_then(|(object, mend)| {
            let object = identify(&object);
            Some((extra.iter().position(|other| *other == object)?, mend))
        });
        let Some((at, mend)) = ours else { return true };
        extra.swap_remove(at);
        *mends.entry(mend).or_default() += 1;
        false
    });
    if expected.is_empty() && extra.is_empty() {
        let mends: Vec<String> = mends
            .iter()
            .map(|(mend, count)| format!("{count} {mend}"))
            .collect();
        return (!mends.is_empty()).then(|| mends.join(", "));
    }
    let list = |objects: &[Object]| {
        let names = objects
            .iter()
            .map(|object| format!("{} {}/{}", object.gvk, object.namespace, object.name));
        names.collect::<Vec<_>>().join(", ")
    };
    Some(format!(
        "ours only [{}], recorded only [{}]",
        list(&extra),
        list(&expected)
    ))
}

fn identify(object: &Value) -> Object {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let hash = Sha256::digest(olm_bundle::canonical_json(object));
    Object {
        gvk: format!("{}/{}", text("/apiVersion"), text("/kind")),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        sha256: HEXLOWER.encode(&hash),
    }
}
