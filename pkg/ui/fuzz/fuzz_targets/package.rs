//! Metas of a catalog: no name, text or icon adds anything to the pages, and icons are images of ours.
#![no_main]

#[path = "../../tests/hostile/page.rs"]
#[allow(dead_code, reason = "the tests check more")]
mod page;

use libfuzzer_sys::fuzz_target;
use olm_fbc::{Limits, decode};
use olm_packages::Profiles;
use olm_ui::{CatalogView, Site};
use page::Page;

fuzz_target!(|data: &[u8]| {
    let limits = Limits { max_meta_bytes: 4096, max_depth: 20, max_documents: 50 };
    let mut profiles = Profiles::default();
    for meta in decode(data, &limits) {
        let Ok(meta) = meta else { break };
        if profiles.add(&meta).is_err() {
            break;
        }
    }
    let catalogs = [CatalogView::new("catalog".into(), profiles.finish())];
    let today = "2026-11-23".parse().expect("a date");
    for file in Site::new(&catalogs, today).expect("one catalog").files() {
        assert!(!file.path.contains("..") && !file.path.starts_with('/'), "{}", file.path);
        let text = String::from_utf8_lossy(&file.bytes);
        if file.path.ends_with(".html") {
            Page::parse(&text).assert_harmless(&file.path, "");
        } else if file.path.starts_with("graphs/") {
            Page::parse(&text).assert_drawing(&file.path, "");
        } else if file.path.starts_with("icons/") && file.path.ends_with(".svg") {
            Page::parse(&text).assert_framed("");
        }
    }
});
