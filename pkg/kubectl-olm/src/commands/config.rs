//! `show --config-schema` and `config init`: configuration of a package.

use olm_bundle::{ConfigSchema, InstallMode, config_schema, config_skeleton, parse};
use olm_resolve::Resolution;
use serde_json::{Value, json};

use super::common::{look_up, warn};
use crate::cli::bundle::{ConfigArgs, InitArgs};
use crate::cli::{PackageArgs, RequestArgs};
use crate::failure::Failure;
use crate::report::Report;
use crate::resolve_report::{ResolveReport, request};
use crate::source::{Sources, bundle_of_image, gates_of};

/// Returns the JSON Schema of `spec.config.inline`.
pub(crate) async fn schema(package: PackageArgs, config: ConfigArgs) -> Result<Report, Failure> {
    let (_, schema) = chosen_schema(&package, &config).await?;
    Ok(Report::new(schema.clone(), format!("{schema:#}\n")))
}

/// Returns a commented `spec.config`.
pub(crate) async fn init(args: InitArgs) -> Result<Report, Failure> {
    let (chosen, schema) = chosen_schema(&args.package, &args.config).await?;
    let text = config_skeleton(&schema);
    let value = json!({
        "package": args.package.package, "bundle": chosen.bundle, "catalog": chosen.catalog,
        "skeleton": text, "schema": schema,
    });
    Ok(Report::new(value, text))
}

/// Returns the bundle that would be installed, and the schema of its configuration.
async fn chosen_schema(args: &PackageArgs, config: &ConfigArgs) -> Result<(Resolution, Value), Failure> {
    let package = &args.package;
    let sources = Sources::open(&args.source).await?;
    let inputs = look_up(&sources, package).await?;
    let request_args = RequestArgs {
        range: config.range.clone(),
        ..RequestArgs::default()
    };
    let gates = gates_of(&args.source).await;
    let request = request(package, &request_args, &inputs, &gates)?;
    let chosen = ResolveReport::new(request, &inputs, None)
        .result
        .map_err(|error| Failure::NegativeAnswer(error.to_string()))?;
    let modes = modes(args, &sources, &chosen).await?;
    // The gates decide if the schema has `deploymentConfig`.
    if let Some(assumption) = gates.assumption() {
        warn(&assumption);
    }
    let schema = config_schema(&ConfigSchema {
        title: &format!("{package} {}", chosen.version),
        modes: &modes,
        install_namespace: config.namespace.as_deref(),
        deployment_config: gates.permitted().deployment_config,
    });
    Ok((chosen, schema))
}

/// Returns the install modes from the catalog, else from the bundle's image.
async fn modes(
    args: &PackageArgs,
    sources: &Sources,
    chosen: &Resolution,
) -> Result<Vec<InstallMode>, Failure> {
    let catalog = sources
        .catalogs
        .iter()
        .find(|catalog| chosen.catalog == catalog.name);
    if let Some(catalog) = catalog
        && let Some(bundle) = catalog.whole_bundle(&args.package, &chosen.bundle).await?
        && let Some(modes) = listed_modes(&bundle)
    {
        return Ok(modes);
    }
    let files = bundle_of_image(&chosen.image, &args.source.access).await?.files;
    let bundle =
        parse(&files).map_err(|error| Failure::NegativeAnswer(format!("{}: {error}", chosen.bundle)))?;
    Ok(bundle.install_modes())
}

/// Returns the install modes that `olm.csv.metadata` lists; none if there is no such property.
fn listed_modes(bundle: &Value) -> Option<Vec<InstallMode>> {
    let properties = bundle.get("properties")?.as_array()?;
    let metadata = properties
        .iter()
        .find(|property| property.get("type").and_then(Value::as_str) == Some("olm.csv.metadata"))?;
    let listed = metadata.pointer("/value/installModes")?.as_array()?;
    let supports = |mode: &InstallMode| {
        listed.iter().any(|item| {
            item.get("type").and_then(Value::as_str) == Some(mode.as_str())
                && item.get("supported").and_then(Value::as_bool) == Some(true)
        })
    };
    Some(InstallMode::ALL.into_iter().filter(supports).collect())
}
