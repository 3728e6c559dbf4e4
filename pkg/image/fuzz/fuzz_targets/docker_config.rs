//! Credentials in all their forms.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| olm_image_fuzz::docker_config(text));
