//! Validation of a configuration by the `jsonschema` library.
//!
//! [`schema::check`](super::schema) runs first, for upstream's messages. The published schema decides here. The two
//! agree (`tests/config_schema.rs`); if they did not, the stricter one would win.

use serde_json::Value;

use super::{ConfigSchema, config_schema};
use crate::model::InstallMode;
use crate::{Bundle, RenderOptions};

/// Validates `input` against the bundle's schema (JSON Schema 2020-12).
///
/// # Errors
/// The first fault, with its path but without the value, which may be secret or long.
pub(super) fn validate(bundle: &Bundle, options: &RenderOptions, input: &Value) -> Result<(), String> {
    let modes: Vec<InstallMode> = InstallMode::ALL
        .into_iter()
        .filter(|mode| bundle.supports(*mode))
        .collect();
    // A bundle that supports no other mode is rejected elsewhere.
    if modes.iter().all(|mode| *mode == InstallMode::MultiNamespace) {
        return Ok(());
    }
    let schema = config_schema(&ConfigSchema {
        title: "the bundle",
        modes: &modes,
        install_namespace: Some(&options.install_namespace),
        deployment_config: options.deployment_config,
    });
    let validator = jsonschema::draft202012::new(&schema)
        .map_err(|error| format!("the schema of the bundle's configuration is not valid: {error}"))?;
    validator.validate(input).map_err(|error| {
        let field = error
            .instance_path()
            .as_str()
            .trim_start_matches('/')
            .replace('/', ".");
        format!("invalid value for field \"{field}\": {}", error.masked())
    })
}
