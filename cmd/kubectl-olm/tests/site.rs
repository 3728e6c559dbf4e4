//! `site` by the real program, without a cluster.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;
#[path = "../../../pkg/ui/tests/common/payloads.rs"]
mod payloads;

use std::collections::BTreeSet;
use std::path::Path;

use common::chromium::Chromium;
use common::picture::{assert_alike, assert_different};
use common::run;
use fantoccini::error::CmdError;
use payloads::{PAYLOADS, everywhere};
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

/// A browser opens every page of a site whose every text is an attack: no dialog opens, no script runs, and the policy of the pages
/// has nothing to refuse, as nothing of the attacks is more than text.
#[tokio::test(flavor = "multi_thread")]
async fn no_attack_runs_in_a_browser() {
    let parent = tempfile::tempdir().unwrap();
    let catalog = parent.path().join("attacks");
    std::fs::create_dir(&catalog).unwrap();
    let metas: Vec<String> = PAYLOADS
        .iter()
        .flat_map(|payload| everywhere(payload))
        .map(|meta| meta.to_string())
        .collect();
    std::fs::write(catalog.join("catalog.json"), metas.join("\n")).unwrap();
    let site = parent.path().join("site");
    let said = run(&["site", catalog.to_str().unwrap(), site.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said}");
    let Some(browser) = Chromium::start().await.unwrap() else {
        common::skipped("this machine has no browser, so no attack was shown to one");
        return;
    };
    let open = async |path: &Path| {
        let address = url::Url::from_file_path(path).unwrap();
        browser.client.goto(address.as_str()).await.unwrap();
        // Clicks open what only attacks open.
        browser
            .value("document.querySelectorAll('summary').forEach((one) => one.click())")
            .await
            .unwrap();
        let dialog = browser.client.get_alert_text().await;
        assert!(
            dialog.as_ref().is_err_and(CmdError::is_no_such_alert),
            "{}: {dialog:?}",
            path.display()
        );
        browser.assert_quiet(&path.display().to_string()).await
    };
    let (mut pages, mut pictures) = (0, 0);
    for file in files(&site) {
        let is = |ending: &str| Path::new(&file).extension().is_some_and(|found| found == ending);
        if is("html") || is("svg") {
            open(&site.join(&file)).await.unwrap();
            pages += usize::from(is("html"));
            pictures += usize::from(is("svg"));
        }
    }
    assert!(
        pages >= PAYLOADS.len() && pictures >= PAYLOADS.len(),
        "{pages} {pictures}"
    );
    // The check itself: a page with an attack as it is opens a dialog.
    let attacked = parent.path().join("attacked.html");
    std::fs::write(&attacked, "<!DOCTYPE html><script>alert(1)</script>").unwrap();
    let address = url::Url::from_file_path(&attacked).unwrap();
    let _ = browser.client.goto(address.as_str()).await;
    assert_eq!(browser.client.get_alert_text().await.unwrap(), "1");
    browser.client.dismiss_alert().await.unwrap();
    browser.end().await.unwrap();
}

/// The pages of a catalog look as their stored pictures, on light and dark screens. A page without its style does not.
#[tokio::test(flavor = "multi_thread")]
async fn pages_look_as_they_did() {
    let parent = tempfile::tempdir().unwrap();
    let site = parent.path().join("site");
    let said = run(&["site", "catalog", "search", site.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said}");
    let Some(browser) = Chromium::start().await.unwrap() else {
        common::skipped("this machine has no browser, so no page was compared with its picture");
        return;
    };
    let picture = async |page: &str| {
        let address = url::Url::from_file_path(site.join(page)).unwrap();
        browser.client.goto(address.as_str()).await.unwrap();
        browser.client.screenshot().await.unwrap()
    };
    let pages = [
        ("packages", "index.html"),
        ("keywords", "keywords.html"),
        ("package", "packages/catalog/lantern.html"),
    ];
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await.unwrap();
        for (name, page) in pages {
            assert_alike(&format!("{name}-{scheme}"), &picture(page).await).unwrap();
        }
    }
    browser.prefer("light").await.unwrap();
    // The check itself.
    assert_different("packages-dark", &picture("index.html").await).unwrap();
    std::fs::write(site.join("style.css"), "").unwrap();
    assert_different("packages-light", &picture("index.html").await).unwrap();
    browser.end().await.unwrap();
}
