//! The range grammar of a ClusterExtension's version: no text breaks it, and a range prints as written.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(range) = text.parse::<olm_version::VersionRange>() else { return };
    assert_eq!(range.to_string(), text);
    for version in ["0.0.0", "1.2.3", "1.2.3-rc.1", "18446744073709551615.0.0"] {
        let version = olm_version::VersionRelease::parse_legacy(version).expect("strict");
        range.matches(&version);
    }
});
