//! `spec.config.inline` of an extension: the configuration of a bundle.

mod deployment;
mod json_schema;
mod namespace_selector;
mod schema;
mod skeleton;
mod validate;
mod words;

use serde_json::{Map, Value};

use crate::model::InstallMode;
use crate::{Bundle, RenderError, RenderOptions};

pub(crate) use deployment::DeploymentConfig;
pub use json_schema::{ConfigSchema, config_schema};
pub use namespace_selector::namespace_selector;
pub use schema::MAX_NAMESPACES;
pub use skeleton::config_skeleton;

/// Field with the namespaces to watch, for bundles that support `MultiNamespace`; setting it selects that install mode.
/// Upstream has neither the field nor the mode.
pub(crate) const WATCH_NAMESPACES: &str = "watchNamespaces";
/// Field with a selector of the namespaces to watch, instead of [`WATCH_NAMESPACES`].
pub(crate) const WATCH_NAMESPACE_SELECTOR: &str = "watchNamespaceSelector";

/// Returns true if the configuration has a field that chooses `MultiNamespace`.
pub(crate) fn chooses_several(config: &Value) -> bool {
    [WATCH_NAMESPACES, WATCH_NAMESPACE_SELECTOR]
        .iter()
        .any(|field| config.get(field).is_some())
}

/// A configuration that fits its bundle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub watch_namespace: Option<String>,
    /// Several namespaces, sorted, by the field [`WATCH_NAMESPACES`].
    pub watch_namespaces: Vec<String>,
    /// True if [`WATCH_NAMESPACE_SELECTOR`] is set.
    pub selects_namespaces: bool,
    pub deployment: Option<DeploymentConfig>,
}

/// Checks the configuration against the bundle and reads it. An absent configuration is not checked if only
/// `AllNamespaces` can be installed.
pub(crate) fn read(bundle: &Bundle, options: &RenderOptions) -> Result<Config, RenderError> {
    if !options.single_own_namespace && options.config.is_none() {
        return Ok(Config::default());
    }
    let given = options.config.as_ref().filter(|value| !value.is_null());
    let input = &given.map_or_else(|| Value::Object(Map::new()), plain_integers);
    schema::check(bundle, options, input)
        .and_then(|()| given.map_or(Ok(()), |_| validate::validate(bundle, options, input)))
        .map_err(|text| RenderError::Config {
            text,
            allowed: allowed(bundle, options),
        })?;
    let watch_namespace = input
        .get("watchNamespace")
        .and_then(Value::as_str)
        .map(ToOwned::to_owned);
    let several = input.get(WATCH_NAMESPACES).and_then(Value::as_array);
    let mut watch_namespaces: Vec<String> = several
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    // The order has no meaning and must not create another revision.
    watch_namespaces.sort_unstable();
    let deployment = input
        .get("deploymentConfig")
        .map(deployment::read)
        .transpose()
        .map_err(|error| {
            RenderError::DeploymentConfig(format!("failed to unmarshal deploymentConfig: {error}"))
        })?;
    Ok(Config {
        watch_namespace,
        watch_namespaces,
        selects_namespaces: input.get(WATCH_NAMESPACE_SELECTOR).is_some(),
        deployment,
    })
}

/// Replaces floats without a fraction by integers: for JSON Schema, 2.0 is an integer.
#[expect(clippy::cast_possible_truncation, reason = "without a fraction, and small")]
fn plain_integers(value: &Value) -> Value {
    /// Every integer up to this one is exact as a float.
    const SAFE: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= SAFE => {
                (float as i64).into()
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain_integers).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), plain_integers(value)))
            .collect(),
        _ => value.clone(),
    }
}

/// Lists the permitted configuration of the bundle as one sentence.
fn allowed(bundle: &Bundle, options: &RenderOptions) -> String {
    let supports = |mode| bundle.supports(mode);
    let (own, single) = (
        supports(InstallMode::OwnNamespace),
        supports(InstallMode::SingleNamespace),
    );
    let mut fields = Vec::new();
    if own || single {
        let namespace = &options.install_namespace;
        let mut what = match (own, single) {
            (true, false) => format!("only \"{namespace}\""),
            (false, _) => format!("any except \"{namespace}\""),
            (true, true) => "any".to_owned(),
        };
        if supports(InstallMode::AllNamespaces) {
            what.push_str(", or absent for all");
        } else if !supports(InstallMode::MultiNamespace) {
            what.push_str(", required");
        }
        fields.push(format!("watchNamespace (a namespace: {what})"));
    }
    if supports(InstallMode::MultiNamespace) {
        fields.push(format!("{WATCH_NAMESPACES} (1 to {MAX_NAMESPACES} namespaces)"));
        fields.push(format!(
            "{WATCH_NAMESPACE_SELECTOR} (labels of 1 to {MAX_NAMESPACES} namespaces)"
        ));
    }
    if options.deployment_config {
        let known = deployment::fields().map(|(name, _)| name).join(", ");
        fields.push(format!("deploymentConfig ({known})"));
    }
    if fields.is_empty() {
        return "The bundle has no configuration fields".to_owned();
    }
    format!("Known fields: {}", fields.join("; "))
}

/// Returns the namespaces that the selector matched, sorted. No namespace would mean all to an operator, so it is an error.
fn selected(options: &RenderOptions) -> Result<Vec<String>, RenderError> {
    let Some(names) = &options.selected_namespaces else {
        return Err(RenderError::UnknownNamespaces);
    };
    let mut names = names.clone();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => Err(RenderError::NoNamespaces),
        count if count > MAX_NAMESPACES => Err(RenderError::TooManyNamespaces),
        _ => Ok(names),
    }
}

/// Returns the namespaces to watch, checked against the install modes; a single empty name means all.
pub(crate) fn targets(
    bundle: &Bundle,
    options: &RenderOptions,
    config: &Config,
) -> Result<Vec<String>, RenderError> {
    if !config.watch_namespaces.is_empty() {
        // The field exists only if the mode is supported.
        return Ok(config.watch_namespaces.clone());
    }
    if config.selects_namespaces {
        return selected(options);
    }
    let targets = match &config.watch_namespace {
        Some(namespace) => vec![namespace.clone()],
        None if bundle.supports(InstallMode::AllNamespaces) => vec![String::new()],
        None => Vec::new(),
    };
    let modes = bundle.install_modes();
    let modes = modes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    let refuse = |what: &str| {
        let list = targets.join(" ");
        RenderError::Options(format!(
            "invalid target namespaces [{list}]: supported install modes [{modes}] do not support {what}"
        ))
    };
    match targets.as_slice() {
        [] => {
            let count = if bundle.supports(InstallMode::MultiNamespace) {
                "at least one"
            } else {
                "exactly one"
            };
            Err(RenderError::Options(format!(
                "invalid target namespaces []: {count} target namespace must be specified"
            )))
        }
        [all] if all.is_empty() => {
            if bundle.supports(InstallMode::AllNamespaces) {
                Ok(targets)
            } else {
                Err(refuse("targeting all namespaces"))
            }
        }
        [own] if *own == options.install_namespace => {
            if bundle.supports(InstallMode::OwnNamespace) {
                Ok(targets)
            } else {
                Err(refuse("targeting own namespace"))
            }
        }
        [other, ..] => {
            if bundle.supports(InstallMode::SingleNamespace) {
                Ok(targets)
            } else {
                Err(refuse(&format!("target namespaces [{other}]")))
            }
        }
    }
}
