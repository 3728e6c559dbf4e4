//! Image references: a valid reference prints as the same text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| olm_image_fuzz::reference(text));
