//! Catalog files: bounded, and what is canonical reads back as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_fbc::{Limits, LocatedMeta, Validator, decode, decode_located};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { max_meta_bytes: 4096, max_depth: 20, max_documents: 50 };
    let mut validator = Validator::default();
    let mut before = 1;
    for meta in decode_located(data, &limits) {
        let Ok((line, meta)) = meta else { break };
        assert!(line >= before);
        before = line;
        let again = decode(meta.blob.as_slice(), &Limits::default()).collect::<Result<Vec<_>, _>>();
        assert_eq!(again.expect("canonical JSON"), [meta.clone()]);
        validator.add(LocatedMeta { file: "catalog", line, meta: &meta });
    }
    validator.finish();
});
