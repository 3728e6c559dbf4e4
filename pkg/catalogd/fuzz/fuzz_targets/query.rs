//! Queries of `/metas`: no query panics, and a projection of an object is an object.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| olm_catalogd_fuzz::any_query(text));
