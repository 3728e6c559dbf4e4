//! Bills of materials: the crates that each program links, as documents of `CycloneDX` 1.6.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::binaries::PROGRAMS;
use super::release::Release;
use crate::shell::{cargo, output, root};

/// Platform whose dependencies are listed.
const PLATFORM: &str = "x86_64-unknown-linux-musl";

/// Answer of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Registry of the package; absent for a crate of the workspace.
    source: Option<String>,
}

/// Name and version of a package.
type Id<'a> = (&'a str, &'a str);

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

/// Writes the bill of materials of each program, `PROGRAM.cdx.json`.
pub(super) fn write(out: &Path, release: &Release) -> anyhow::Result<()> {
    for (program, document) in documents(&release.version, &release.date()?)? {
        let text = serde_json::to_string_pretty(&document)? + "\n";
        fs::write(out.join(format!("{program}.cdx.json")), text)?;
    }
    Ok(())
}

/// Returns the bill of materials of each program, with the version and the date of the release.
pub(crate) fn documents(version: &str, date: &str) -> anyhow::Result<Vec<(&'static str, Value)>> {
    let metadata = output(cargo().args(["metadata", "--format-version=1", "--locked"]))?;
    let metadata = serde_json::from_str(&metadata).context("cannot read the answer of `cargo metadata`")?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let lock = toml::from_str(&lock).context("cannot parse Cargo.lock")?;
    // `cargo metadata` also includes features that only tests enable; `cargo tree` has those of the programs.
    let tree = output(
        cargo()
            .args([
                "tree",
                "--locked",
                "--edges=normal,no-proc-macro",
                "--prefix=depth",
            ])
            .args(["--charset=ascii", "--target", PLATFORM])
            .args(PROGRAMS.iter().flat_map(|program| ["--package", program])),
    )?;
    let documents = PROGRAMS.map(|program| {
        let linked = linked(&tree, program)?;
        Ok((
            program,
            document(&metadata, &lock, &linked, (version, date), program)?,
        ))
    });
    documents.into_iter().collect()
}

/// Returns the bill of materials of one program. `linked` has the packages that the program links, with their dependencies.
fn document(
    metadata: &Metadata,
    lock: &Lock,
    linked: &BTreeMap<Id<'_>, BTreeSet<Id<'_>>>,
    (version, date): (&str, &str),
    program: &str,
) -> anyhow::Result<Value> {
    let packages: BTreeMap<Id<'_>, &Package> = metadata
        .packages
        .iter()
        .map(|package| ((package.name.as_str(), package.version.as_str()), package))
        .collect();
    let checksums: BTreeMap<Id<'_>, &str> = lock
        .package
        .iter()
        .filter_map(|locked| {
            let checksum = locked.checksum.as_deref()?;
            Some(((locked.name.as_str(), locked.version.as_str()), checksum))
        })
        .collect();
    let mut described = Value::Null;
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for (id, needs) in linked {
        let package = packages
            .get(id)
            .with_context(|| format!("{} {} is unknown", id.0, id.1))?;
        let url = package_url(*id);
        let needs: BTreeSet<String> = needs.iter().map(|id| package_url(*id)).collect();
        dependencies.insert(url.clone(), json!({"ref": url, "dependsOn": needs}));
        let component = component(package, checksums.get(id).copied());
        if id.0 == program {
            described = component;
        } else {
            components.insert(url, component);
        }
    }
    described["type"] = json!("application");
    described["version"] = json!(version);
    let about = json!({"timestamp": date, "component": described});
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": about,
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    }))
}

/// Returns the packages that a program links, with their dependencies.
///
/// Each line of `tree` has a depth, a name and a version, as in `2anyhow v1.0.0 (*)`. The tree lists the dependencies of a
/// package only at its first occurrence, which may be below another program.
fn linked<'a>(tree: &'a str, program: &str) -> anyhow::Result<BTreeMap<Id<'a>, BTreeSet<Id<'a>>>> {
    let mut needs: BTreeMap<Id<'_>, BTreeSet<Id<'_>>> = BTreeMap::new();
    let mut above: Vec<Id<'_>> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unreadable = || format!("`cargo tree` wrote a line of an unknown form: {line}");
        let name = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let depth = line.get(..line.len() - name.len()).unwrap_or_default();
        let depth: usize = depth.parse().with_context(unreadable)?;
        let mut words = name.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let id = (name, version.with_context(unreadable)?);
        above.truncate(depth);
        if let Some(dependent) = above.last() {
            needs.entry(*dependent).or_default().insert(id);
        }
        needs.entry(id).or_default();
        above.push(id);
    }
    let start = needs.keys().find(|id| id.0 == program).copied();
    let mut open = vec![start.with_context(|| format!("package {program} is unknown"))?];
    let mut linked = BTreeMap::new();
    while let Some(id) = open.pop() {
        if linked.contains_key(&id) {
            continue;
        }
        let below = needs.get(&id).cloned().unwrap_or_default();
        open.extend(&below);
        linked.insert(id, below);
    }
    Ok(linked)
}

/// Returns the component of a package. Only a package of a registry has a package URL: a scanner that finds the URL of a crate of the
/// workspace takes it for the package of that name in the registry.
fn component(package: &Package, checksum: Option<&str>) -> Value {
    let url = package_url((&package.name, &package.version));
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": package.name,
        "version": package.version,
    });
    if package.source.is_some() {
        component["purl"] = json!(url);
    }
    if let Some(license) = &package.license {
        // Old manifests of crates separate alternative licences by a slash.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// Returns the package URL, `pkg:cargo/NAME@VERSION`.
fn package_url((name, version): Id<'_>) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree of two programs. It lists the dependencies of `a` only below the first one.
    const TREE: &str = "0catalogd v1.0.0 (/src/cmd/catalogd)\n1a v0.1.0+x\n2c v1.0.0\n\n\
                        0kubectl-olm v1.0.0 (/src/cmd/kubectl-olm)\n1b v3.0.0\n2a v0.1.0+x (*)\n";

    fn metadata() -> Metadata {
        let package = |name: &str, version: &str, license: &str, source: Option<&str>| json!({"name": name, "version": version, "license": license, "source": source});
        let registry = Some("registry+https://registry.test");
        serde_json::from_value(json!({"packages": [
            package("catalogd", "1.0.0", "Apache-2.0", None),
            package("kubectl-olm", "1.0.0", "Apache-2.0", None),
            package("a", "0.1.0+x", "MIT/Apache-2.0", registry),
            package("b", "3.0.0", "MIT", registry),
            package("c", "1.0.0", "MIT", None),
            package("only-tests", "2.0.0", "MIT", registry),
        ]}))
        .unwrap()
    }

    fn of(program: &str) -> Value {
        let lock = toml::from_str(
            "[[package]]\nname = \"a\"\nversion = \"0.1.0+x\"\nchecksum = \"abc\"\n\
             [[package]]\nname = \"catalogd\"\nversion = \"1.0.0\"\n",
        )
        .unwrap();
        let linked = linked(TREE, program).unwrap();
        document(
            &metadata(),
            &lock,
            &linked,
            ("1.2.0", "2001-09-09T01:46:40Z"),
            program,
        )
        .unwrap()
    }

    fn refs(document: &Value) -> Vec<&str> {
        let components = document["components"].as_array().unwrap();
        components
            .iter()
            .map(|c| c["bom-ref"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn only_crates_that_the_program_links_are_listed() {
        let document = of("catalogd");
        assert_eq!(refs(&document), ["pkg:cargo/a@0.1.0%2Bx", "pkg:cargo/c@1.0.0"]);
        assert_eq!(document["components"][0]["purl"], "pkg:cargo/a@0.1.0%2Bx");
        assert!(
            document["components"][1].get("purl").is_none(),
            "c is in no registry"
        );
        assert_eq!(document["components"][0]["hashes"][0]["content"], "abc");
        assert_eq!(
            document["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(document["metadata"]["timestamp"], "2001-09-09T01:46:40Z");
        assert_eq!(
            document["dependencies"][0]["dependsOn"],
            json!(["pkg:cargo/c@1.0.0"])
        );
    }

    #[test]
    fn each_program_has_its_own_bill() {
        let document = of("kubectl-olm");
        assert_eq!(
            refs(&document),
            ["pkg:cargo/a@0.1.0%2Bx", "pkg:cargo/b@3.0.0", "pkg:cargo/c@1.0.0"]
        );
        let described = &document["metadata"]["component"];
        assert_eq!(described["name"], "kubectl-olm");
        assert_eq!(
            (&described["type"], &described["version"]),
            (&json!("application"), &json!("1.2.0"))
        );
    }
}
