//! Ignore files: no rules and no path break them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_fbc::IndexIgnore;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (rules, path) = text.split_once('\0').unwrap_or((&text, "a/b.yaml"));
    if let Ok(ignore) = IndexIgnore::new([("", rules), ("a", rules)]) {
        let _ = ignore.retain(&mut vec![path.to_owned()]);
    }
});
