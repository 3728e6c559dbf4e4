//! Validation: no object of a known schema breaks it, and the same input gives the same findings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_fbc::{Limits, LocatedMeta, Meta, decode, validate};

fuzz_target!(|data: &[u8]| {
    let texts: Vec<String> = data
        .split(|byte| *byte == 0)
        .take(20)
        .enumerate()
        .map(|(at, bytes)| {
            let schema = ["olm.package", "olm.channel", "olm.bundle", "olm.deprecations"][at % 4];
            let fields = String::from_utf8_lossy(bytes);
            let package = if at % 4 == 0 { "" } else { "\"package\":\"p\"," };
            format!("{{\"schema\":\"{schema}\",{package}\"name\":\"p\",{fields}}}")
        })
        .collect();
    let metas: Vec<Meta> = texts
        .iter()
        .flat_map(|text| decode(text.as_bytes(), &Limits::default()).flatten())
        .collect();
    let run = || validate(metas.iter().map(|meta| LocatedMeta { file: "a", line: 1, meta }));
    assert_eq!(run(), run());
});
