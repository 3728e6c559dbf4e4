//! Constraints: no property, and no CEL expression, breaks the reader or the evaluation, or takes long.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_fbc::Property;
use olm_resolve::constraint::{Environment, InstalledBundle, parse, unmet};
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // Uses the text as an expression, and as a constraint of any shape.
    let mut properties = vec![property(json!({"cel": {"rule": text}}))];
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        properties.push(property(value));
    }
    let environment = Environment {
        installed: vec![InstalledBundle {
            package: "blue".into(),
            version: olm_version::Version::new(1, 2, 0),
            properties: (0..40).map(|at| json!({"type": "t", "value": [at, "x", null]})).collect(),
        }],
        served: [].into(),
    };
    for property in properties {
        if let Ok(requirements) = parse(&[property]) {
            for unmet in unmet(&requirements, &environment) {
                assert!(!unmet.text.is_empty());
            }
        }
    }
});

fn property(value: Value) -> Property {
    Property {
        type_: "olm.constraint".to_owned(),
        value,
    }
}
