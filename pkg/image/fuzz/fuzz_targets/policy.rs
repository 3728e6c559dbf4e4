//! Signature policies: accepted completely or rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| olm_image_fuzz::policy(text));
