//! Every scenario under `test/testdata/resolve`: catalogs, what is installed and asked for, and what comes of
//! it, to the letter.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and read files"
)]

use olm_fbc::{Meta, PackageContent};
use olm_resolve::{CatalogInput, CatalogLookup, Installed, Request, Selection, resolve, suggest};
use olm_version::{BundleVersion, RequestedRange};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PACKAGE: &str = "p";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    #[expect(dead_code, reason = "for people")]
    about: String,
    catalogs: Vec<Catalog>,
    #[serde(default)]
    request: Asked,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalog {
    name: String,
    #[serde(default)]
    priority: i32,
    /// Reason why the catalog cannot be read; `down` for one that is not being served.
    unread: Option<String>,
    /// Bundles by name with their version.
    #[serde(default)]
    bundles: BTreeMap<String, String>,
    /// Entries by channel.
    #[serde(default)]
    channels: BTreeMap<String, Vec<serde_json::Value>>,
    /// Deprecated bundles with their message.
    #[serde(default)]
    deprecated: BTreeMap<String, String>,
    /// Types of further properties by bundle.
    #[serde(default)]
    needs: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    version: Option<String>,
    channels: Vec<String>,
    self_certified: bool,
    release_support: bool,
    upstream: bool,
    installed: Option<From>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    name: String,
    version: String,
    release: Option<String>,
    catalog: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Expect {
    Error {
        error: String,
    },
    Chosen {
        bundle: String,
        #[serde(default)]
        catalog: Option<String>,
        #[serde(default)]
        left_out: Vec<String>,
        #[serde(default)]
        deprecated: Vec<String>,
        #[serde(default)]
        moved_from: Option<String>,
    },
}

impl Catalog {
    fn input(&self) -> CatalogInput {
        let lookup = match self.unread.as_deref() {
            Some("down") => CatalogLookup::NotServing,
            Some(reason) => CatalogLookup::Failed(reason.to_owned()),
            None if self.bundles.is_empty() => CatalogLookup::NoSuchPackage,
            None => CatalogLookup::Found(Arc::new(self.content())),
        };
        CatalogInput {
            name: self.name.as_str().into(),
            priority: self.priority,
            lookup,
        }
    }

    fn content(&self) -> PackageContent {
        let mut metas = vec![meta(
            "olm.package",
            PACKAGE,
            &json!({"schema": "olm.package", "name": PACKAGE}),
        )];
        for (name, entries) in &self.channels {
            metas.push(meta(
                "olm.channel",
                name,
                &json!({"name": name, "entries": entries}),
            ));
        }
        for (name, version) in &self.bundles {
            let mut properties =
                vec![json!({"type": "olm.package", "value": {"packageName": PACKAGE, "version": version}})];
            properties.extend(
                self.needs
                    .get(name)
                    .map(|need| json!({"type": need, "value": {}})),
            );
            let bundle =
                json!({"name": name, "image": format!("registry.test/{name}"), "properties": properties});
            metas.push(meta("olm.bundle", name, &bundle));
        }
        if !self.deprecated.is_empty() {
            let entry = |(name, message): (&String, &String)| json!({"reference": {"schema": "olm.bundle", "name": name}, "message": message});
            let entries: Vec<_> = self.deprecated.iter().map(entry).collect();
            metas.push(meta("olm.deprecations", "", &json!({ "entries": entries })));
        }
        PackageContent::from_metas(PACKAGE, metas).expect("the scenario's catalog is sound")
    }
}

fn meta(schema: &str, name: &str, value: &serde_json::Value) -> Meta {
    let package = if schema == "olm.package" { "" } else { PACKAGE };
    Meta {
        schema: schema.to_owned(),
        package: package.to_owned(),
        name: name.to_owned(),
        blob: value.to_string().into_bytes(),
    }
}

impl Asked {
    fn request(&self) -> Request {
        Request {
            package: PACKAGE.into(),
            range: self.version.as_deref().and_then(RequestedRange::new),
            channels: self.channels.clone(),
            self_certified: self.self_certified,
            release_support: self.release_support,
            selection: if self.upstream {
                Selection::Upstream
            } else {
                Selection::Ours
            },
            installed: self.installed.as_ref().map(|from| Installed {
                name: from.name.as_str().into(),
                version: BundleVersion::recorded(from.version.as_str(), from.release.clone()),
                catalog: from.catalog.as_deref().map(Into::into),
            }),
            similar: Vec::new(),
        }
    }
}

fn outcome(scenario: &Scenario, catalogs: &[CatalogInput]) -> Expect {
    match resolve(&scenario.request.request(), catalogs) {
        Err(error) => Expect::Error {
            error: error.to_string(),
        },
        Ok(resolution) => Expect::Chosen {
            bundle: resolution.bundle.to_string(),
            catalog: (catalogs.len() > 1).then(|| resolution.catalog.to_string()),
            left_out: resolution
                .left_out
                .into_iter()
                .map(|(catalog, _)| catalog.to_string())
                .collect(),
            deprecated: resolution.deprecation.bundles.into_keys().collect(),
            moved_from: resolution.moved_from.map(|from| from.to_string()),
        },
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect();
    found.sort();
    found
}

#[test]
fn scenarios_have_their_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/testdata/resolve");
    let files = files(&root);
    assert!(files.len() > 10, "the scenarios are there");
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable scenario");
        let scenario: Scenario =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut catalogs: Vec<_> = scenario.catalogs.iter().map(Catalog::input).collect();
        let found = outcome(&scenario, &catalogs);
        if found != scenario.expect {
            wrong.push(format!(
                "{}\n  found  {found:?}\n  wanted {:?}",
                file.display(),
                scenario.expect
            ));
        }
        // Our choice does not depend on the order of the catalogs.
        catalogs.reverse();
        if !scenario.request.upstream && outcome(&scenario, &catalogs) != found {
            wrong.push(format!(
                "{}: depends on the order of the catalogs",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The whole reasoning of every scenario, and the smallest change where nothing was chosen.
#[test]
fn explanations_match_the_recordings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/testdata/resolve");
    for file in files(&root) {
        let text = std::fs::read_to_string(&file).expect("a readable scenario");
        let scenario: Scenario = serde_saphyr::from_str(&text).expect("a scenario");
        let catalogs: Vec<_> = scenario.catalogs.iter().map(Catalog::input).collect();
        let request = scenario.request.request();
        let seen = match resolve(&request, &catalogs) {
            Ok(resolution) => json!({
                "chosen": resolution.bundle,
                "catalog": resolution.catalog,
                "explanation": resolution.explanation,
            }),
            Err(error) => json!({
                "message": error.to_string(),
                "suggestion": suggest(&request, &catalogs, None)
                    .map(|changes| changes.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "explanation": error.explanation,
            }),
        };
        let name = file
            .strip_prefix(&root)
            .expect("below the root")
            .with_extension("");
        let name = name.to_string_lossy().replace(['/', '-'], "_");
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_yaml_snapshot!(name, seen));
    }
}
