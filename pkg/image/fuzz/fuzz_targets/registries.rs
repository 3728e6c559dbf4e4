//! registries.conf files: the locations they name are valid repositories.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| olm_image_fuzz::registries(text));
