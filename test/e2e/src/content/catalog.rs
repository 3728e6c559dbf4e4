//! Generates a file-based catalog from the rows of a table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Keyword, bundle_name, bundle_repository, package_name, support};

/// Name of a registry that does not exist. `registries.conf` names a mirror of it.
pub const MIRRORED_REGISTRY: &str = "mirrored.invalid";

/// A row of a catalog's table.
#[derive(Debug, Clone)]
pub struct Row {
    /// Local name of the package.
    pub package: String,
    /// Version of the bundle.
    pub version: String,
    /// Channel of the bundle.
    pub channel: String,
    /// Version that the bundle replaces; empty for none.
    pub replaces: String,
    /// Content of the bundle.
    pub contents: Vec<Keyword>,
}

/// Returns the catalog of `rows` as a JSON stream. `registry` is the host of the images, and `id` makes names unique.
pub fn catalog_file(rows: &[Row], id: &str, registry: &str) -> String {
    let packages: BTreeSet<&str> = rows.iter().map(|row| row.package.as_str()).collect();
    let mut metas = Vec::new();
    for local in packages {
        let own: Vec<&Row> = rows.iter().filter(|row| row.package == local).collect();
        metas.extend(package_metas(&package_name(local, id), &own, id, registry));
    }
    metas
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn package_metas(package: &str, rows: &[&Row], id: &str, registry: &str) -> Vec<Value> {
    let mut channels: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut bundles: BTreeMap<String, Value> = BTreeMap::new();
    let mut deprecations = Vec::new();
    let mut lifecycles = Vec::new();
    for row in rows {
        let name = bundle_name(package, &row.version);
        let mut entry = json!({"name": name});
        if !row.replaces.is_empty() {
            entry["replaces"] = json!(bundle_name(package, &row.replaces));
        }
        channels.entry(&row.channel).or_default().push(entry);
        for keyword in &row.contents {
            if let Keyword::Deprecated(message) = keyword {
                deprecations.push(json!({
                    "reference": {"schema": "olm.bundle", "name": name}, "message": message,
                }));
            }
            if let Keyword::Support(phases) = keyword {
                let minor = row.version.rsplit_once('.').map_or("", |(minor, _)| minor);
                lifecycles.push(json!({"name": minor, "phases": support::phases(phases)}));
            }
        }
        let mut properties =
            vec![json!({"type": "olm.package", "value": {"packageName": package, "version": row.version}})];
        properties.extend(row.contents.iter().filter_map(|keyword| property(keyword, id)));
        bundles.insert(
            name.clone(),
            json!({
                "schema": "olm.bundle", "package": package, "name": name,
                "image": format!("{}/{}", host(row, registry), bundle_repository(package, &row.version)),
                "properties": properties,
            }),
        );
    }
    let default_channel = rows.first().map_or("", |row| row.channel.as_str());
    let mut metas =
        vec![json!({"schema": "olm.package", "name": package, "defaultChannel": default_channel})];
    metas.extend(channels.into_iter().map(|(name, entries)| {
        json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries})
    }));
    metas.extend(bundles.into_values());
    if !deprecations.is_empty() {
        metas.push(json!({"schema": "olm.deprecations", "package": package, "entries": deprecations}));
    }
    if !lifecycles.is_empty() {
        metas.push(
            json!({"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": package,
            "versions": lifecycles}),
        );
    }
    metas
}

/// Returns the host that the catalog names for the image of a bundle.
fn host<'a>(row: &Row, registry: &'a str) -> &'a str {
    if row.contents.contains(&Keyword::Mirrored) {
        MIRRORED_REGISTRY
    } else {
        registry
    }
}

/// Returns the property that a keyword adds to a bundle in the catalog, if any.
fn property(keyword: &Keyword, id: &str) -> Option<Value> {
    let api = json!({"group": format!("e2e-{id}.example.com"), "version": "v1", "kind": "Test"});
    Some(match keyword {
        Keyword::Crd | Keyword::SmallCrd | Keyword::WideCrd | Keyword::TwoVersionsCrd => {
            json!({"type": "olm.gvk", "value": api})
        }
        Keyword::RequiresApi => json!({"type": "olm.gvk.required", "value": api}),
        Keyword::RequiresPackage(wanted) => {
            let (name, range) = wanted.split_once(' ').unwrap_or((wanted, ">=0.0.0"));
            json!({"type": "olm.package.required",
                   "value": {"packageName": package_name(name, id), "versionRange": range}})
        }
        Keyword::ListedMinKubeVersion(version) => {
            json!({"type": "olm.csv.metadata", "value": {"description": "long", "minKubeVersion": version}})
        }
        Keyword::Color(color) => json!({"type": "color", "value": color}),
        Keyword::RequiresColor(color) => json!({"type": "olm.constraint", "value": {
            "failureMessage": format!("something {color} is needed"),
            "cel": {"rule": format!("properties.exists(p, p.type == 'color' && p.value == '{color}')")},
        }}),
        Keyword::BrokenConstraint => json!({"type": "olm.constraint", "value": {"all": {"constraints": []}}}),
        _ => return None,
    })
}
