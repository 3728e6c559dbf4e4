//! Versions and releases: what reads prints back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(version) = olm_version::parse_version(text) {
        assert_eq!(version.to_string(), text);
        let read = olm_version::VersionRelease::parse_legacy(text).expect("the same grammar");
        assert_eq!(read.to_string(), text);
        assert!(read.cmp_precedence(&read).is_eq());
    }
    if let Ok(release) = text.parse::<olm_version::Release>() {
        assert_eq!(release.to_string(), text);
        assert!(!text.is_empty() && text.len() <= 20);
    }
});
