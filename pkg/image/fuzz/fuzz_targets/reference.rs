//! Image references: what reads prints back as the same reference.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| olm_image_fuzz::reference(text));
