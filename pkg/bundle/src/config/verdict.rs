//! The verdict of the `jsonschema` library on a configuration.
//!
//! [`schema::check`](super::schema) comes first, for the words that clients know; this is what the schema that is
//! handed out says. The two agree, as `tests/config_schema.rs` shows; were they not to, the stricter one counts.

use serde_json::Value;

use super::{ConfigSchema, config_schema};
use crate::model::InstallMode;
use crate::{Bundle, RenderOptions};

/// Holds `input` against the bundle's schema (JSON Schema 2020-12).
///
/// # Errors
/// The first fault, with its path. Values are not repeated: they may be secret, and long.
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
