//! Image references: what reads prints back as the same reference.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(reference) = text.parse::<olm_image::Reference>() {
        let again = reference.to_string().parse::<olm_image::Reference>();
        assert_eq!(again.expect("printed by itself"), reference);
    }
});
