//! Pages about hostile catalogs: every payload in every field, read back by the parser that browsers are specified by.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

#[path = "../common/mod.rs"]
mod common;
mod live;
mod page;
#[path = "../common/payloads.rs"]
mod payloads;

use std::collections::BTreeSet;

use olm_ui::{Site, markdown};
use proptest::prelude::*;
use proptest::sample::select;

use common::{TODAY, profiles, real_catalogs, view};
use page::Page;
use payloads::{PAYLOADS, everywhere};

fn is_page(path: &str) -> bool {
    std::path::Path::new(path)
        .extension()
        .is_some_and(|ending| ending == "html")
}

#[test]
fn payloads_in_every_field_stay_text() {
    assert!(PAYLOADS.len() >= 40);
    let mut kinds = BTreeSet::new();
    for payload in PAYLOADS {
        let catalogs = [view(payload, profiles(&everywhere(payload)))];
        let site = Site::new(&catalogs, TODAY.parse().unwrap()).unwrap();
        let mut paths = BTreeSet::new();
        for file in site.files() {
            assert!(
                paths.insert(file.path.clone()),
                "{payload}: {} comes twice",
                file.path
            );
            let harmless =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '/');
            assert!(
                file.path.chars().all(harmless) && !file.path.contains(".."),
                "{}",
                file.path
            );
            let text = String::from_utf8(file.bytes).unwrap();
            kinds.insert(file.path.rsplit('.').next().unwrap().to_owned());
            if is_page(&file.path) {
                Page::parse(&text).assert_harmless(&file.path, payload);
            } else if file.path.starts_with("graphs/") {
                Page::parse(&text).assert_drawing(&file.path, payload);
            } else if file.path.starts_with("icons/") {
                Page::parse(&text).assert_framed(payload);
            }
        }
        assert!(
            paths.iter().any(|path| path.starts_with("packages/")),
            "{payload}: {paths:?}"
        );
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["css", "html", "svg"]);
}

/// The check itself: a page with a payload as it is has a fault, unless the payload is Markdown or only text.
#[test]
fn payloads_that_are_not_escaped_are_found() {
    let raw = |payload: &&&str| {
        let page = format!("<!DOCTYPE html><html><body><main>{payload}</main></body></html>");
        Page::parse(&page).faults().is_empty()
    };
    let missed: Vec<&&str> = PAYLOADS.iter().filter(raw).collect();
    let expected = |payload: &&&str| payload.starts_with(['[', '!']) || payload.contains(['\u{0}']);
    assert!(missed.iter().all(expected), "{missed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Descriptions of parts of payloads in any order, cut anywhere.
    #[test]
    fn parts_of_payloads_stay_text(parts in proptest::collection::vec((select(&PAYLOADS[..]), 0_usize..80, 0_usize..80), 1..8)) {
        let cut = |(payload, from, length): (&str, usize, usize)| -> String {
            payload.chars().skip(from).take(length).collect()
        };
        let text: String = parts.into_iter().map(cut).collect();
        let html = markdown(&text).into_string();
        let page = Page::parse(&format!("<!DOCTYPE html><html><body><main>{html}</main></body></html>"));
        prop_assert_eq!(page.faults(), [""; 0], "{}", text);
    }
}

#[test]
fn links_of_every_page_have_a_target() {
    let catalogs = [
        view("..", profiles(&everywhere("../../etc"))),
        view("kite", profiles(&everywhere("kite"))),
    ];
    assert_closed(&Site::new(&catalogs, TODAY.parse().unwrap()).unwrap());
}

#[test]
fn pages_of_real_packages_are_harmless_and_closed() {
    let Some(catalogs) = real_catalogs() else { return };
    let packages: usize = catalogs.iter().map(|catalog| catalog.packages().len()).sum();
    assert!(packages > 300, "{packages}");
    let site = Site::new(&catalogs, TODAY.parse().unwrap()).unwrap();
    for file in site.files().filter(|file| is_page(&file.path)) {
        let text = String::from_utf8(file.bytes).unwrap();
        Page::parse(&text).assert_harmless(&file.path, "");
    }
    assert_closed(&site);
}

/// Checks that every address of the site's own is a file of the site.
fn assert_closed(site: &Site<'_>) {
    let files: Vec<_> = site.files().collect();
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    for file in files.iter().filter(|file| is_page(&file.path)) {
        let page = Page::parse(std::str::from_utf8(&file.bytes).unwrap());
        for address in page.own_addresses() {
            let depth = file.path.matches('/').count();
            let target = match address.strip_prefix(&"../".repeat(depth)) {
                Some(target) => target.to_owned(),
                None => panic!("{}: {address}", file.path),
            };
            assert!(
                paths.contains(target.as_str()),
                "{}: {address} is no file",
                file.path
            );
        }
    }
}
