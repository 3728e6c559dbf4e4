//! Vectors in `resolution.jsonl`: the bundle that is chosen from real catalogs, or the error.
//!
//! They run twice: with this project's selection between catalogs, which has the listed deviations, and with upstream's
//! selection, which has none.

use super::catalogs::{Catalogs, Lookup};
use super::{Report, deviations, rows};
use anyhow::Context as _;
use olm_resolve::{
    CatalogInput, CatalogLookup, DeprecationInfo, FailureCause, Installed, Request, Resolution, ResolveError,
    Selection, Selector, resolve,
};
use olm_version::{BundleVersion, RequestedRange};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Label of every catalog with its name.
const NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// Runs the cases with this project's selection between catalogs.
pub fn run(dir: &Path) -> Report {
    compare(dir, "resolution", Selection::Ours)
}

/// Runs the cases with upstream's selection between catalogs.
pub fn run_upstream(dir: &Path) -> Report {
    compare(dir, "resolution-upstream", Selection::Upstream)
}

/// Sets of catalogs, by name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sets {
    catalog_sets: BTreeMap<String, Vec<Catalog>>,
}

/// A catalog of a set. `content` names its recorded content.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Catalog {
    name: String,
    priority: i32,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    availability_mode: Option<String>,
    serving: bool,
    content: String,
}

/// A case: the inputs of a resolution, and upstream's answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: u64,
    set: String,
    package: String,
    version: Option<String>,
    #[serde(default)]
    channels: Vec<String>,
    upgrade_constraint_policy: Option<String>,
    selector: Option<RawSelector>,
    #[serde(default)]
    bundle_release_support: bool,
    installed: Option<RawInstalled>,
    result: Expected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSelector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Deserialize)]
struct RawInstalled {
    name: String,
    version: String,
    release: Option<String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Expected {
    error: Option<String>,
    bundle: Option<String>,
    image: Option<String>,
    version: Option<String>,
    release: Option<String>,
    deprecation_entries: usize,
    deprecation_conditions: Option<BTreeMap<String, String>>,
    install_metadata: Option<serde_json::Value>,
    depends_on_catalog_order: bool,
    results: Vec<Expected>,
}

fn compare(dir: &Path, kind: &'static str, selection: Selection) -> Report {
    let mut report = Report::new(kind);
    if !dir.join("resolution-sets.json").exists() {
        report.skip("resolution-sets.json");
        return report;
    }
    let sets = std::fs::read(dir.join("resolution-sets.json"))
        .context("cannot read resolution-sets.json")
        .and_then(|text| Ok(serde_json::from_slice::<Sets>(&text)?.catalog_sets));
    let sets = match sets {
        Ok(sets) => sets,
        Err(error) => {
            report.wrong.push(format!("{error:#}"));
            return report;
        }
    };
    let mut listed = if selection == Selection::Ours {
        deviations::listed(kind)
    } else {
        BTreeMap::new()
    };
    let mut catalogs = Catalogs::new(&dir.join("catalogs"));
    for row in rows::<Row>(&dir.join("resolution.jsonl"), &mut report) {
        let Some(known) = sets.get(&row.set) else {
            report.skip(format!("set {} of resolution-sets.json", row.set));
            continue;
        };
        let answer = match answer(&row, known, &mut catalogs, selection) {
            Ok(Outcome::Answer(answer)) => *answer,
            Ok(Outcome::Missing(missing)) => {
                report.skip(missing);
                continue;
            }
            Err(error) => {
                report.count(Some(format!("{}: {error:#}", row.id)));
                continue;
            }
        };
        let ours = expected(&row, &answer);
        let alternatives = if row.result.depends_on_catalog_order {
            row.result.results.as_slice()
        } else {
            std::slice::from_ref(&row.result)
        };
        let difference = (!alternatives.contains(&ours)).then(|| {
            let (set, upstream) = (&row.set, &row.result);
            format!(
                "({set}): {}\n    ours {ours:?}\n    upstream {upstream:?}",
                summary(&answer)
            )
        });
        let id = row.id.to_string();
        let stated = listed.remove(id.as_str());
        report.count_listed(&id, difference, &summary(&answer), stated);
    }
    report
}

enum Outcome {
    Answer(Box<Result<Resolution, ResolveError>>),
    /// A catalog is missing or incomplete.
    Missing(String),
}

/// Resolves a case with this project's resolver.
fn answer(
    row: &Row,
    known: &[Catalog],
    catalogs: &mut Catalogs,
    selection: Selection,
) -> anyhow::Result<Outcome> {
    let selector = match selector(row.selector.as_ref()) {
        Ok(selector) => selector,
        Err(error) => return Ok(Outcome::Answer(Box::new(Err(error)))),
    };
    let mut inputs = Vec::new();
    for catalog in known {
        let mut labels = catalog.labels.clone();
        labels.insert(NAME_LABEL.to_owned(), catalog.name.clone());
        let available = catalog.availability_mode.as_deref() != Some("Unavailable");
        if !available || !selector.matches(&labels) {
            continue;
        }
        let lookup = if catalog.serving {
            match catalogs.package(&catalog.content, &row.package)? {
                Lookup::Found(package) => CatalogLookup::Found(package),
                Lookup::Absent => CatalogLookup::NoSuchPackage,
                Lookup::Missing(missing) => return Ok(Outcome::Missing(missing)),
            }
        } else {
            CatalogLookup::NotServing
        };
        inputs.push(CatalogInput {
            name: catalog.name.as_str().into(),
            priority: catalog.priority,
            lookup,
        });
    }
    let request = Request {
        package: row.package.as_str().into(),
        range: row.version.as_deref().and_then(RequestedRange::new),
        channels: row.channels.clone(),
        self_certified: row.upgrade_constraint_policy.as_deref() == Some("SelfCertified"),
        installed: row.installed.as_ref().map(|installed| Installed {
            name: installed.name.as_str().into(),
            version: BundleVersion::recorded(installed.version.as_str(), installed.release.clone()),
            catalog: None,
        }),
        release_support: row.bundle_release_support,
        selection,
        similar: Vec::new(),
    };
    Ok(Outcome::Answer(Box::new(resolve(&request, &inputs))))
}

fn selector(raw: Option<&RawSelector>) -> Result<Selector, ResolveError> {
    let Some(raw) = raw else {
        return Ok(Selector::default());
    };
    Selector::new(
        raw.match_labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str())),
        raw.match_expressions
            .iter()
            .map(|e| (e.key.as_str(), e.operator.as_str(), e.values.as_slice())),
    )
    .map_err(|source| FailureCause::Selector { source }.into())
}

/// Formats an answer as the list of deviations does.
fn summary(answer: &Result<Resolution, ResolveError>) -> String {
    match answer {
        Ok(resolution) => format!("{} of {}", resolution.bundle, resolution.catalog),
        Err(error) => format!("error: {}", error.head()),
    }
}

/// Converts an answer to the form of the vectors.
fn expected(row: &Row, answer: &Result<Resolution, ResolveError>) -> Expected {
    let resolution = match answer {
        Err(error) => {
            return Expected {
                error: Some(error.head()),
                ..Expected::default()
            };
        }
        Ok(resolution) => resolution,
    };
    let version = &resolution.version;
    let release = version.release.as_ref().map(ToString::to_string);
    let info = &resolution.deprecation;
    let entries =
        info.package.len() + info.channels.values().map(Vec::len).sum::<usize>() + info.bundles.len();
    let mut installed = serde_json::json!({ "name": resolution.bundle });
    if row.bundle_release_support {
        installed["version"] = version.version.to_string().into();
        if let Some(release) = &release {
            installed["release"] = release.as_str().into();
        }
    } else {
        installed["version"] = version.legacy_string().into();
    }
    Expected {
        bundle: Some(resolution.bundle.to_string()),
        image: Some(resolution.image.to_string()),
        version: Some(version.version.to_string()),
        release,
        deprecation_entries: entries,
        deprecation_conditions: (entries > 0).then(|| conditions(info, &row.channels, &resolution.bundle)),
        install_metadata: Some(installed),
        ..Expected::default()
    }
}

/// Returns the deprecation conditions of an extension whose installed bundle is `bundle`.
fn conditions(info: &DeprecationInfo, channels: &[String], bundle: &str) -> BTreeMap<String, String> {
    let of_package = info.package.clone();
    let of_channels = info
        .channels
        .iter()
        .filter(|(name, _)| channels.is_empty() || channels.contains(name))
        .flat_map(|(_, messages)| messages.clone())
        .collect::<Vec<_>>();
    let of_bundle: Vec<_> = info.bundles.get(bundle).cloned().into_iter().collect();
    let all = [of_package.clone(), of_channels.clone(), of_bundle.clone()].concat();
    let condition = |messages: Vec<String>, otherwise: &str| {
        let messages: Vec<_> = messages
            .into_iter()
            .filter(|message| !message.is_empty())
            .collect();
        if messages.is_empty() {
            format!("False|NotDeprecated|{otherwise}")
        } else {
            format!("True|Deprecated|{}", messages.join("\n"))
        }
    };
    [
        ("Deprecated", condition(all, "not deprecated")),
        (
            "PackageDeprecated",
            condition(of_package, "package not deprecated"),
        ),
        (
            "ChannelDeprecated",
            condition(of_channels, "channel not deprecated"),
        ),
        ("BundleDeprecated", condition(of_bundle, "bundle not deprecated")),
    ]
    .map(|(name, condition)| (name.to_owned(), condition))
    .into()
}
