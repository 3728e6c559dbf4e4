//! Catalogs for tests and benches: generated ones, and the real ones of `OLM_VECTORS`.
#![allow(dead_code, reason = "not every test uses every function")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    unreachable_pub,
    reason = "tests fail by panicking, read files and say what they skip"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};

use olm_fbc::{Limits, decode};
use olm_packages::{PackageProfile, Profiles};
use olm_ui::CatalogView;
use serde_json::{Value, json};

/// Day of the pages.
pub const TODAY: &str = "2026-11-23";

/// Returns a catalog with packages.
pub fn view(name: &str, packages: Vec<PackageProfile>) -> CatalogView {
    CatalogView::new(name.into(), packages)
}

/// Reads metas as a catalog reads them.
pub fn profiles(metas: &[Value]) -> Vec<PackageProfile> {
    let lines: Vec<String> = metas.iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    let mut profiles = Profiles::default();
    for meta in decode(text.as_bytes(), &Limits::default()) {
        profiles.add(&meta.expect("a meta")).expect("a sound meta");
    }
    profiles.finish()
}

/// Generates a package of one channel: each bundle replaces the one before, and every tenth skips three.
pub fn profile(name: &str, bundles: usize, description: &str) -> PackageProfile {
    let bundle = |number: usize| format!("{name}.v1.{number}.0");
    let mut metas = vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable", "description": "Flies"}),
    ];
    let entries: Vec<Value> = (0..bundles)
        .map(|number| {
            let mut entry = json!({"name": bundle(number)});
            if number > 0 {
                entry["replaces"] = json!(bundle(number - 1));
            }
            if number > 10 && number % 10 == 0 {
                entry["skips"] = json!([bundle(number - 2), bundle(number - 3), bundle(number - 4)]);
            }
            entry
        })
        .collect();
    metas.push(json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}));
    metas.extend((0..bundles).map(|number| {
        json!({"schema": "olm.bundle", "package": name, "name": bundle(number), "image": format!("quay.io/example/{name}:1.{number}.0"),
            "properties": [{"type": "olm.package", "value": {"packageName": name, "version": format!("1.{number}.0")}},
                {"type": "olm.csv.metadata", "value": {"displayName": "Kite", "description": description,
                    "keywords": ["kafka", "sky"], "provider": {"name": "Example"}}}]})
    }));
    profiles(&metas).pop().expect("a package")
}

/// Reads the real catalogs below `OLM_VECTORS`; none, with a visible line, if the variable is not set.
pub fn real_catalogs() -> Option<Vec<CatalogView>> {
    let Some(vectors) = std::env::var_os("OLM_VECTORS").map(PathBuf::from) else {
        writeln!(
            std::io::stderr(),
            "SKIPPED: OLM_VECTORS is not set, so no page of a real package was made"
        )
        .expect("standard error");
        return None;
    };
    let catalogs = ["medium", "rest"].map(|name| {
        let mut profiles = Profiles::default();
        for file in files(&vectors.join("catalogs").join(name)) {
            let bytes = std::fs::read(&file).expect("a file");
            for meta in decode(bytes.as_slice(), &Limits::default()) {
                profiles.add(&meta.expect("a meta")).expect("a sound meta");
            }
        }
        view(name, profiles.finish())
    });
    Some(catalogs.into())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
