//! Files of rules: what they name is a repository again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| olm_image_fuzz::registries(text));
