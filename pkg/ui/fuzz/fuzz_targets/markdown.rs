//! Markdown of strangers: whatever it is, a browser reads only plain elements and links to other hosts.
#![no_main]

#[path = "../../tests/hostile/page.rs"]
#[allow(dead_code, reason = "the tests check more")]
mod page;

use libfuzzer_sys::fuzz_target;
use olm_ui::markdown;
use page::Page;

fuzz_target!(|text: &str| {
    let html = markdown(text).into_string();
    let page = Page::parse(&format!("<!DOCTYPE html><html><body><main>{html}</main></body></html>"));
    assert_eq!(page.faults(), [""; 0]);
});
