//! The grammar of skipRange: no text breaks it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(range) = text.parse::<olm_version::SkipRange>() else { return };
    for version in ["0.0.0", "1.2.3", "1.2.3-rc.1", "18446744073709551615.0.0"] {
        range.matches(&olm_version::parse_version(version).expect("strict"));
    }
});
