//! Lifecycles: no object breaks the reader, everything stays within its limits, and the order of objects decides nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_fbc::lifecycle::{Lifecycles, MAX_IGNORED, MAX_PHASES, MAX_VERSIONS};

fn read(texts: &[String]) -> Lifecycles {
    let mut all = Lifecycles::default();
    for text in texts {
        all.add(text.as_bytes());
    }
    all
}

fuzz_target!(|data: &[u8]| {
    let mut texts: Vec<String> = data
        .split(|byte| *byte == 0)
        .take(4)
        .map(|bytes| {
            let entry = String::from_utf8_lossy(bytes);
            format!("{{\"versions\":[{{\"name\":\"1.0\",{entry}}}]}}")
        })
        .collect();
    texts.push(String::from_utf8_lossy(data).into_owned());
    let all = read(&texts);
    assert!(all.versions().count() <= MAX_VERSIONS && all.ignored().len() <= MAX_IGNORED);
    for (_, lifecycle) in all.versions() {
        assert!(lifecycle.phases.len() <= MAX_PHASES);
    }
    texts.reverse();
    assert!(all.versions().eq(read(&texts).versions()));
});
