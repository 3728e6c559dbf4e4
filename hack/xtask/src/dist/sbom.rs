//! Bill of materials: the crates that the programs link, as `CycloneDX` 1.6.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::binaries::PROGRAMS;
use super::release::Release;
use crate::shell::{cargo, output, root};

/// Answer of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

/// Kind of a dependency: none for a normal one, else `dev` or `build`.
#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes the bill of materials.
pub(super) fn write(out: &Path, release: &Release) -> anyhow::Result<()> {
    let metadata = output(cargo().args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform=x86_64-unknown-linux-musl",
    ]))?;
    let metadata = serde_json::from_str(&metadata).context("cannot read the answer of `cargo metadata`")?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let lock = toml::from_str(&lock).context("cannot parse Cargo.lock")?;
    let document = document(&metadata, &lock, release)?;
    let text = serde_json::to_string_pretty(&document)? + "\n";
    fs::write(out.join("sbom.cdx.json"), text)?;
    Ok(())
}

fn document(metadata: &Metadata, lock: &Lock, release: &Release) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package))
        .collect();
    let checksums: BTreeMap<(&str, &str), &str> = lock
        .package
        .iter()
        .filter_map(|locked| {
            let checksum = locked.checksum.as_deref()?;
            Some(((locked.name.as_str(), locked.version.as_str()), checksum))
        })
        .collect();
    let linked = linked(metadata);
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for (id, needs) in &linked {
        let package = packages.get(id).with_context(|| format!("{id} is unknown"))?;
        let checksum = checksums.get(&(package.name.as_str(), package.version.as_str()));
        let url = package_url(package);
        let needs: BTreeSet<String> = needs
            .iter()
            .filter_map(|id| packages.get(id))
            .map(|package| package_url(package))
            .collect();
        dependencies.insert(url.clone(), json!({"ref": url, "dependsOn": needs}));
        components.insert(url, component(package, checksum.copied()));
    }
    let about = json!({
        "timestamp": release.date()?,
        "component": {"type": "application", "bom-ref": "olm", "name": "olm", "version": release.version},
    });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": about,
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

/// Returns the packages that the programs link, with their normal dependencies.
fn linked(metadata: &Metadata) -> BTreeMap<&str, BTreeSet<&str>> {
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut open: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_none() && PROGRAMS.contains(&package.name.as_str()))
        .map(|package| package.id.as_str())
        .collect();
    let mut linked = BTreeMap::new();
    while let Some(id) = open.pop() {
        if linked.contains_key(id) {
            continue;
        }
        let dependencies = nodes.get(id).map_or(&[][..], |node| node.deps.as_slice());
        let needs: BTreeSet<&str> = dependencies
            .iter()
            .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()))
            .map(|dependency| dependency.pkg.as_str())
            .collect();
        open.extend(&needs);
        linked.insert(id, needs);
    }
    linked
}

fn component(package: &Package, checksum: Option<&str>) -> Value {
    let url = package_url(package);
    let mut component = json!({
        "type": if package.source.is_none() && PROGRAMS.contains(&package.name.as_str()) { "application" } else { "library" },
        "bom-ref": url,
        "name": package.name,
        "version": package.version,
        "purl": url,
    });
    if let Some(license) = &package.license {
        // Old manifests separate alternatives by a slash.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// Returns the package URL: `pkg:cargo/NAME@VERSION`.
fn package_url(package: &Package) -> String {
    format!(
        "pkg:cargo/{}@{}",
        package.name,
        package.version.replace('+', "%2B")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linked_crates_are_listed() {
        let metadata: Metadata = serde_json::from_value(json!({
            "packages": [
                {"id": "p", "name": "catalogd", "version": "1.0.0", "license": "Apache-2.0", "source": null},
                {"id": "a", "name": "a", "version": "0.1.0+x", "license": "MIT/Apache-2.0", "source": "registry"},
                {"id": "t", "name": "t", "version": "2.0.0", "license": "MIT", "source": "registry"},
            ],
            "resolve": {"nodes": [
                {"id": "p", "deps": [
                    {"pkg": "a", "dep_kinds": [{"kind": null}]},
                    {"pkg": "t", "dep_kinds": [{"kind": "dev"}, {"kind": "build"}]},
                ]},
                {"id": "a", "deps": []},
                {"id": "t", "deps": []},
            ]},
        }))
        .unwrap();
        let lock = toml::from_str(
            "[[package]]\nname = \"a\"\nversion = \"0.1.0+x\"\nchecksum = \"abc\"\n\
             [[package]]\nname = \"catalogd\"\nversion = \"1.0.0\"\n",
        )
        .unwrap();
        let release = Release {
            version: "1.0.0".to_owned(),
            commit: String::new(),
            tree_state: "clean",
            epoch: 1_000_000_000,
            image_prefix: String::new(),
            download_url: None,
        };
        let document = document(&metadata, &lock, &release).unwrap();
        let components = document["components"].as_array().unwrap();
        let urls: Vec<&str> = components.iter().map(|c| c["purl"].as_str().unwrap()).collect();
        assert_eq!(urls, ["pkg:cargo/a@0.1.0%2Bx", "pkg:cargo/catalogd@1.0.0"]);
        assert_eq!(components[0]["hashes"][0]["content"], "abc");
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["metadata"]["timestamp"], "2001-09-09T01:46:40Z");
        assert_eq!(
            document["dependencies"][1]["dependsOn"],
            json!(["pkg:cargo/a@0.1.0%2Bx"])
        );
    }
}
