//! Foreign text in messages: bounded, without control characters; names and identities of any object are read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_text::dns::{is_label, is_subdomain, subdomain_faults};
use olm_text::object::{ObjectId, manifest};
use olm_text::{cut, head, printable, quoted};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let limit = usize::from(text.bytes().next().unwrap_or_default());
    assert!(head(text, limit).len() <= limit && text.starts_with(head(text, limit)));
    assert!(cut(text, limit).len() <= limit.max("…".len()));
    let shown = printable(text);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    assert_eq!(printable(&shown), shown, "a second time changes nothing");
    let name = quoted(text, limit);
    assert!(!name.contains(char::is_control));
    assert_eq!(is_subdomain(text), subdomain_faults(text).is_empty());
    assert!(!is_label(text) || is_subdomain(text));
    if let Ok(object) = serde_json::from_str::<Value>(text) {
        let id = ObjectId::of(&object);
        let _ = (id.is_crd(), id.stored_namespace());
        let plain = manifest(object, &["dropped"]);
        assert_eq!(manifest(plain.clone(), &["dropped"]), plain, "a second time changes nothing");
    }
});
