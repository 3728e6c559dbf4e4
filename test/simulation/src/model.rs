//! The model `M(spec)`: the state that a cluster must reach, computed by the resolver and the renderer alone. `check` compares
//! the cluster with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use olm_api::{ClusterExtension, FailurePolicy, UpgradeConstraintPolicy};
use olm_bundle::RenderOptions;
use olm_fbc::PackageContent;
use olm_resolve::{
    CatalogInput, CatalogLookup, Installed, Request, Resolution, Selection, Selector, resolve,
};
use olm_runtime::{Feature, FeatureGates};
use olm_version::{BundleVersion, RequestedRange};
use serde_json::Value;

use crate::content::Content;

/// Existing catalogs by name, with the digest that each serves.
pub(crate) type CatalogsInUse = BTreeMap<&'static str, &'static str>;

/// Priorities of the catalogs.
pub(crate) const PRIORITIES: [(&str, i32); 2] = [("first", 10), ("second", 0)];

/// Goal of an extension: the state in which it must end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Goal {
    /// Installed bundle, whose objects are on the cluster; `None` if nothing is installed.
    pub(crate) bundle: Option<Chosen>,
    /// True if the spec is fulfilled, so that the extension is Ready.
    pub(crate) complete: bool,
    /// True if a broken version is rolling out and stays so, with objects of two versions on the cluster.
    pub(crate) stuck: bool,
}

/// A bundle that the resolver chose.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) installed: Installed,
    pub(crate) image: String,
}

impl Chosen {
    fn of(resolution: &Resolution) -> Self {
        let release_support = FeatureGates::default().enabled(Feature::BundleReleaseSupport);
        Self {
            installed: Installed {
                name: resolution.bundle.clone(),
                version: BundleVersion::spelled(resolution.version.clone(), release_support),
                catalog: Some(resolution.catalog.clone()),
            },
            image: resolution.image.as_str().to_owned(),
        }
    }

    /// Returns true for the bundle whose Deployment never becomes available.
    fn is_broken(&self) -> bool {
        self.installed.name.as_str() == "alpha.v2.1.0"
    }
}

/// Returns the goal of an extension that starts from an installed bundle, if its spec and the catalogs stay as they are.
pub(crate) fn goal(
    content: &Content,
    extension: &ClusterExtension,
    catalogs: &CatalogsInUse,
    installed: Option<Chosen>,
) -> Goal {
    let mut installed = installed;
    if is_paused(extension) || !has_rights(extension) {
        return Goal {
            bundle: installed,
            complete: false,
            stuck: false,
        };
    }
    // An upgrade may take several steps along the graph. Each step leads to a higher version or is the last one.
    for _ in 0..8 {
        let Some((request, inputs)) = question(content, extension, catalogs, installed.as_ref()) else {
            break;
        };
        let done = |bundle, complete, stuck| Goal {
            bundle,
            complete,
            stuck,
        };
        match resolve(&request, &inputs) {
            Ok(resolution) => {
                let next = Chosen::of(&resolution);
                if installed
                    .as_ref()
                    .is_some_and(|now| now.installed.name == next.installed.name)
                {
                    return done(Some(next), true, false);
                }
                if next.is_broken() {
                    let rollout = extension.spec.rollout.as_ref();
                    // Without an installed bundle, there is nothing to roll back to.
                    let rolls_back = installed.is_some()
                        && rollout.is_some_and(|rollout| rollout.on_failure == Some(FailurePolicy::RollBack));
                    return done(installed, false, !rolls_back);
                }
                installed = Some(next);
            }
            Err(_) if inputs.is_empty() => {
                let wanted = request.range.as_ref();
                let stays = installed.as_ref().is_some_and(|now| {
                    wanted.is_none_or(|range| range.as_str() == now.installed.version.as_str())
                });
                return done(installed, stays, false);
            }
            Err(_) => return done(installed, false, false),
        }
    }
    Goal {
        bundle: installed,
        complete: false,
        stuck: false,
    }
}

/// Returns true if the extension is paused, so that the controllers write none of its objects.
pub(crate) fn is_paused(extension: &ClusterExtension) -> bool {
    let rollout = extension.spec.rollout.as_ref();
    rollout.is_some_and(|rollout| rollout.paused == Some(true))
}

/// Returns true if the account of the extension may write its objects. Account `nobody` of the small world has no rights.
fn has_rights(extension: &ClusterExtension) -> bool {
    let account = extension.spec.service_account.as_ref();
    account.and_then(|account| account.name.as_deref()) != Some("nobody")
}

/// Returns the resolver's inputs; `None` if the spec has no catalog filter or the filter is invalid.
fn question(
    content: &Content,
    extension: &ClusterExtension,
    catalogs: &CatalogsInUse,
    installed: Option<&Chosen>,
) -> Option<(Request, Vec<CatalogInput>)> {
    let filter = extension.spec.source.catalog.as_ref()?;
    let request = Request {
        package: filter.package_name.as_str().into(),
        range: filter.version.as_deref().and_then(RequestedRange::new),
        channels: filter.channels.clone().unwrap_or_default(),
        self_certified: filter.upgrade_constraint_policy == Some(UpgradeConstraintPolicy::SelfCertified),
        installed: installed.map(|installed| installed.installed.clone()),
        release_support: FeatureGates::default().enabled(Feature::BundleReleaseSupport),
        selection: Selection::Ours,
        similar: Vec::new(),
    };
    let labels = filter
        .selector
        .iter()
        .flat_map(|selector| selector.match_labels.iter().flatten())
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let expressions: [(&str, &str, &[String]); 0] = [];
    let selector = Selector::new(labels, expressions).ok()?;
    let mut inputs = Vec::new();
    for (name, digest) in catalogs {
        let label = (
            "olm.operatorframework.io/metadata.name".to_owned(),
            (*name).to_owned(),
        );
        if !selector.matches(&[label].into()) {
            continue;
        }
        let package = content
            .generations
            .get(*digest)?
            .get(filter.package_name.as_str());
        let found = |package: &Arc<PackageContent>| CatalogLookup::Found(Arc::clone(package));
        let priority = PRIORITIES.iter().find(|(known, _)| known == name);
        inputs.push(CatalogInput {
            name: (*name).into(),
            priority: priority.map_or(0, |(_, priority)| *priority),
            lookup: package.map_or(CatalogLookup::NoSuchPackage, found),
        });
    }
    Some((request, inputs))
}

/// Returns the objects that the renderer makes of a bundle for the extension.
pub(crate) fn objects(
    content: &Content,
    extension: &ClusterExtension,
    bundle: &Chosen,
) -> anyhow::Result<Vec<Value>> {
    let root = content
        .bundle(&bundle.image)
        .ok_or_else(|| anyhow::anyhow!("image {} does not exist", bundle.image))?;
    let parsed = olm_bundle::parse(&olm_bundle_files::read(root)?)?;
    let namespace = extension.spec.namespace.clone();
    let suggested = olm_bundle::install_namespace(&parsed, None)?.name;
    let mut options = RenderOptions::new(namespace.clone().unwrap_or(suggested));
    options.with_namespace = namespace.is_none();
    options.config = extension.spec.inline_config();
    let mut objects = olm_bundle::render(&parsed, &options)?;
    // Rendered CRDs have an empty status; those on the cluster have a filled one.
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        object.remove("status");
    }
    Ok(objects)
}

/// Returns the path of the first field of `wanted` that the object lacks or has with another value. The object may have more
/// fields, such as defaults.
pub(crate) fn difference(wanted: &Value, object: &Value) -> Option<String> {
    match (wanted, object) {
        (Value::Object(wanted), Value::Object(object)) => wanted.iter().find_map(|(name, value)| {
            let found = match object.get(name) {
                None if is_empty(value) => return None,
                None => String::new(),
                Some(found) => difference(value, found)?,
            };
            Some(format!(".{name}{found}"))
        }),
        (Value::Array(wanted), Value::Array(object)) if wanted.len() == object.len() => {
            let mut pairs = wanted.iter().zip(object).enumerate();
            pairs.find_map(|(at, (wanted, object))| Some(format!("[{at}]{}", difference(wanted, object)?)))
        }
        (Value::Null, _) => None,
        (wanted, object) => (wanted != object).then(String::new),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(value) => !value,
        Value::Number(_) => false,
    }
}
