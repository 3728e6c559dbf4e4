//! Parses any file: bounded, and its values as JSON read back as the same values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_yaml::{Limits, document, documents, json, repeated_keys};

fuzz_target!(|data: &[u8]| {
    let limits = Limits {
        max_bytes: 4096,
        max_depth: 20,
        max_memory: 1 << 20,
    };
    repeated_keys(data, &limits);
    let first = document(data, &limits).ok();
    for value in documents(data, &limits).into_iter().flatten().chain(first) {
        let text = value.to_string();
        assert_eq!(json(text.as_bytes(), &Limits::default()).expect("JSON"), value);
    }
});
