//! `site` by the real program, without a cluster.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::run;
use serde_json::Value;

/// Returns the files below a directory as relative paths.
fn files(dir: &Path) -> BTreeSet<String> {
    fn walk(dir: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(dir, dir, &mut found);
    found
}

#[test]
fn catalogs_become_a_site() {
    let parent = tempfile::tempdir().unwrap();
    let site = parent.path().join("site");
    let dir = site.to_str().unwrap();
    let said = run(&["site", "catalog", "search", dir, "-o", "json"]);
    assert_eq!(said.code, 0, "{said}");
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let found = files(&site);
    assert_eq!(value["files"], found.len(), "{found:?}");
    assert_eq!(
        (&value["catalogs"], &value["directory"]),
        (&2.into(), &dir.into())
    );
    for path in [
        "index.html",
        "icon.svg",
        "style.css",
        "keywords.html",
        "catalogs.html",
        "packages/catalog/lantern.html",
        "graphs/catalog/lantern.svg",
    ] {
        assert!(found.contains(path), "{path}: {found:?}");
    }
    let page = std::fs::read_to_string(site.join("packages/catalog/lantern.html")).unwrap();
    assert!(
        page.contains("packageName: lantern")
            && page.contains("kubectl olm install lantern --create-namespace")
    );
    let drawn = std::fs::read_to_string(site.join("graphs/catalog/lantern.svg")).unwrap();
    assert_eq!(
        drawn,
        run(&["graph", "lantern", "--dir", "catalog", "--format", "svg"]).out
    );

    let again = run(&["site", "catalog", dir]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.err.contains("is not empty"), "{again}");
    assert_eq!(files(&site), found);
}

#[test]
fn a_site_needs_readable_catalogs() {
    let parent = tempfile::tempdir().unwrap();
    let site = parent.path().join("site");
    let said = run(&["site", "catalog", "./nowhere", site.to_str().unwrap()]);
    assert_eq!(said.code, 3, "{said}");
    assert!(!site.exists());
    let twins = run(&["site", "catalog", "catalog", site.to_str().unwrap()]);
    assert_eq!(twins.code, 0, "{twins}");
    assert!(site.join("packages/catalog-2/lantern.html").is_file());
}
