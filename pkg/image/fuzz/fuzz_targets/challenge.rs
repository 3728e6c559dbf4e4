//! Answers of registries: challenges, tokens, and requested delays.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| olm_image_fuzz::challenge(text));
