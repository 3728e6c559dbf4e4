//! `show --config-schema` and `config init`: what a package lets its users configure.

use olm_bundle::{ConfigSchema, InstallMode, config_schema, config_skeleton, parse};
use olm_resolve::Resolution;
use serde_json::{Value, json};

use super::common::look_up;
use crate::cli::bundle::{ConfigArgs, InitArgs};
use crate::cli::{PackageArgs, WishArgs};
use crate::failure::Failure;
use crate::report::Report;
use crate::source::{Sources, bundle_files};
use crate::wish::{Asked, request};

/// The JSON Schema of `spec.config.inline`.
pub(crate) async fn schema(package: PackageArgs, config: ConfigArgs) -> Result<Report, Failure> {
    let (_, schema) = made(&package, &config).await?;
    Ok(Report::new(schema.clone(), format!("{schema:#}\n")))
}

/// A commented `spec.config`.
pub(crate) async fn init(args: InitArgs) -> Result<Report, Failure> {
    let (chosen, schema) = made(&args.package, &args.config).await?;
    let text = config_skeleton(&schema);
    let value = json!({
        "package": args.package.package, "bundle": chosen.bundle, "catalog": chosen.catalog,
        "skeleton": text, "schema": schema,
    });
    Ok(Report::new(value, text))
}

/// The bundle that would be installed, and its schema.
async fn made(args: &PackageArgs, config: &ConfigArgs) -> Result<(Resolution, Value), Failure> {
    let package = &args.package;
    let sources = Sources::open(&args.source).await?;
    let inputs = look_up(&sources, package).await?;
    let wish = WishArgs {
        range: config.range.clone(),
        ..WishArgs::default()
    };
    let request = request(package, &wish, &inputs)?;
    let chosen = Asked::new(request, &inputs, None)
        .answer
        .map_err(|error| Failure::No(error.to_string()))?;
    let modes = modes(args, &sources, &chosen).await?;
    let schema = config_schema(&ConfigSchema {
        title: &format!("{package} {}", chosen.version),
        modes: &modes,
        install_namespace: config.namespace.as_deref(),
        deployment_config: true,
    });
    Ok((chosen, schema))
}

/// The install modes as the catalog tells them; from the bundle's image when it does not.
async fn modes(
    args: &PackageArgs,
    sources: &Sources,
    chosen: &Resolution,
) -> Result<Vec<InstallMode>, Failure> {
    let catalog = sources
        .catalogs
        .iter()
        .find(|catalog| catalog.name == chosen.catalog);
    if let Some(catalog) = catalog
        && let Some(bundle) = catalog.whole_bundle(&args.package, &chosen.bundle).await?
        && let Some(modes) = told(&bundle)
    {
        return Ok(modes);
    }
    let files = bundle_files(&chosen.image, &args.source.access).await?;
    let bundle = parse(&files).map_err(|error| Failure::No(format!("{}: {error}", chosen.bundle)))?;
    Ok(bundle.install_modes())
}

/// Returns the install modes that `olm.csv.metadata` lists; none if there is no such property.
fn told(bundle: &Value) -> Option<Vec<InstallMode>> {
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
