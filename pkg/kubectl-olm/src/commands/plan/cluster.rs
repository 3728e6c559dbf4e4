//! Plan for an extension of a cluster.

use std::path::Path;

use kube::ResourceExt as _;
use olm_api::{ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_bundle::{Bundle, Certificates, InstallMode, crd_roles, serving_certificates, without_crd_roles};
use olm_decide::extension::History;
use olm_plan::{BundleIdentity, CatalogIdentity, Change, Plan, Side};
use olm_resolve::{Installed, Request, Resolution, resolve};
use olm_text::object::metadata_name;
use olm_version::BundleVersion;
use serde_json::Value;

use super::place::install_namespace;
use super::{checks, dependencies, hold, identity, live};
use crate::absent;
use crate::cli::bundle::Issuer;
use crate::cli::plan::PlanArgs;
use crate::commands::bundle::{Configuration, InstallInto, certificates, rendered_with};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::kept::Kept;
use crate::resolution_input::ResolutionInput;
use crate::source::{Cluster, Joining, SourceError, bundle_of_image, needs};
use crate::spec_range;

/// Maximum size of a manifest of an extension, in bytes.
const MANIFEST_LIMIT: u64 = 4 << 20;

/// Makes the plan for the next bundle of an extension, by dry runs with the user's rights.
pub(super) async fn plan(args: &PlanArgs) -> Result<Plan, Failure> {
    let cluster = Cluster::connect(&args.source.access).await?;
    let name = args.extensions.first().map(String::as_str);
    let gates = cluster.gates().await;
    plan_of(&cluster, args, &gates, name, args.to.as_deref(), &[]).await
}

/// Makes the plan for one extension in the version range `to`, while the extensions `joining` move to other bundles.
pub(crate) async fn plan_of(
    cluster: &Cluster,
    args: &PlanArgs,
    gates: &Gates,
    name: Option<&str>,
    to: Option<&str>,
    joining: &[Joining],
) -> Result<Plan, Failure> {
    let (extension, installed) = wanted(cluster, args, name, to).await?;
    let name = extension.metadata.name.clone().unwrap_or_default();
    let input = ResolutionInput::of(cluster, &args.source, extension, installed, gates);
    let input = input.await.map_err(no_plan)?;
    let extension = input.extension.clone().unwrap_or_default();
    let (found, kept) = chosen(cluster, args, &extension, &input).await?;
    let revisions = cluster.revisions(Some(&name)).await?;
    let history = History::read(&revisions);
    let newest = active(revisions).pop();
    let mut change = Change {
        extension: Some(name.clone()),
        namespace: install_namespace(&extension, newest.as_ref())
            .unwrap_or_default()
            .to_owned(),
        config: extension.spec.inline_config(),
        catalog: catalog(cluster, &found).await?,
        unchecked: kept.into_iter().collect(),
        ..Change::default()
    };
    if let Some(revision) = &newest {
        change.from = Some(present(cluster, revision, &mut change.unchecked).await?);
    }
    let (issuer, assumed_issuer) = issuer(args, cluster, gates, newest.as_ref()).await?;
    let selected = cluster.selected_namespaces(change.config.as_ref()).await?;
    let config = Configuration {
        inline: change.config.clone(),
        selected: selected.clone(),
        permitted: gates.permitted(),
    };
    let creates = extension.spec.namespace.is_none();
    let target = target(args, &found, &input.request, &change, (config, creates), issuer).await?;
    checks::assume(input.assumption.clone(), &mut change);
    checks::assume(assumed_issuer.filter(|_| has_webhooks(&target)), &mut change);
    let is_gated = needs_permission(&target.bundle, change.config.as_ref());
    checks::assume(gates.assumption().filter(|_| is_gated), &mut change);
    let min_kube_version = target.bundle.min_kube_version().map(ToOwned::to_owned);
    (change.namespace, change.to) = (target.namespace, target.side);
    if let Some(needed) = min_kube_version {
        checks::kube_version(cluster, &extension, &needed, &mut change).await?;
    }
    add_crd_roles(&extension, &mut change);
    let version = BundleVersion::spelled(found.version.clone(), gates.release_support());
    hold::check(cluster, &extension, &history, &version, &mut change).await;
    let resolved = (&found, &input.request);
    dependencies::check(cluster, &name, &history, resolved, joining, &mut change).await?;
    let survey = checks::StoredSurvey {
        wanted: args.stored_objects,
        time: args.timeout,
    };
    checks::crds(cluster, gates, survey, &extension, &mut change).await?;
    checks::account(&extension, &mut change);
    let (next, catalog) = (&change.to.bundle, change.catalog.as_ref());
    let held = newest
        .as_ref()
        .and_then(|newest| checks::rollback(&extension, newest, next, selected.as_deref(), catalog));
    change.refusals.extend(held);
    let package = &input.request.package;
    let bundle = needs::resolved(&found, package, gates.release_support());
    change.dependents = cluster.dependents(&name, bundle, joining).await?;
    let known = change
        .from
        .as_ref()
        .map(|side| side.objects.clone())
        .unwrap_or_default();
    let wanted = change.to.objects.clone();
    let mut plan = change.plan();
    if plan.outcome() != olm_plan::Outcome::Nothing {
        Box::pin(live::observe(cluster, &name, &known, wanted, &mut plan)).await?;
    }
    Ok(plan)
}

/// Returns the bundle that the spec resolves to. If no catalog is selected, it is the bundle that stays, with a sentence that says so.
async fn chosen(
    cluster: &Cluster,
    args: &PlanArgs,
    extension: &ClusterExtension,
    input: &ResolutionInput,
) -> Result<(Resolution, Option<String>), Failure> {
    let error = match resolve(&input.request, &input.inputs) {
        Ok(found) => return Ok((found, None)),
        Err(error) => error,
    };
    if !args.source.is_offline()
        && let Some(kept) = Kept::find(cluster, extension, input.request.range.as_ref()).await?
        && let Some(found) = kept.resolution()
    {
        let sentence = format!(
            "upgrades: no catalog is selected, so bundle {} stays",
            kept.title()
        );
        return Ok((found, Some(sentence)));
    }
    Err(Failure::Refused(format!(
        "no bundle can be installed for ClusterExtension {:?}: {error}",
        extension.name_any()
    )))
}

/// Returns the catalog of the bundle; none if it is unknown.
async fn catalog(cluster: &Cluster, found: &Resolution) -> Result<Option<CatalogIdentity>, SourceError> {
    if found.catalog.is_empty() {
        return Ok(None);
    }
    Ok(Some(CatalogIdentity {
        name: found.catalog.to_string(),
        digest: cluster.catalog_digest(&found.catalog).await?,
    }))
}

/// Returns a failure for which there is no plan; a negative answer of another command is not one of `plan`.
pub(super) fn no_plan(failure: Failure) -> Failure {
    match failure {
        Failure::NegativeAnswer(text) => Failure::NoPlan(text),
        other => other,
    }
}

/// Returns the extension as the command line asks for it, and its installed bundle.
pub(super) async fn wanted(
    cluster: &Cluster,
    args: &PlanArgs,
    name: Option<&str>,
    to: Option<&str>,
) -> Result<(ClusterExtension, Option<Installed>), Failure> {
    let (mut extension, installed) = match (&args.file, name) {
        (Some(path), given) => {
            let extension = manifest(path)?;
            let name = extension.metadata.name.clone().unwrap_or_default();
            if let Some(given) = given.filter(|given| *given != name) {
                return Err(Failure::Usage(format!(
                    "the manifest is of ClusterExtension {name:?}, not {given:?}: omit the name, or give the manifest of {given:?}"
                )));
            }
            let present = cluster.extension(&name).await?;
            (extension, present.and_then(|(_, installed)| installed))
        }
        (None, Some(name)) => match cluster.extension(name).await? {
            Some(found) => found,
            None => {
                return Err(Failure::NoPlan(format!(
                    "{}; for a new extension, give its manifest by --filename",
                    absent::extension(cluster, name).await
                )));
            }
        },
        (None, None) => {
            return Err(Failure::Usage(
                "give the name of an extension, its manifest by --filename, or --from and --to".to_owned(),
            ));
        }
    };
    if let Some(catalog) = &mut extension.spec.source.catalog {
        if let Some(range) = to {
            catalog.version = Some(spec_range::flag(range).map_err(Failure::Usage)?);
        }
        if !args.channels.is_empty() {
            catalog.channels = Some(args.channels.clone());
        }
    }
    Ok((extension, installed))
}

/// Reads the manifest of an extension.
fn manifest(path: &Path) -> Result<ClusterExtension, Failure> {
    let failed = |source| SourceError::Read {
        path: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MANIFEST_LIMIT {
        return Err(Failure::Usage(format!(
            "{} exceeds the limit of {MANIFEST_LIMIT} bytes",
            path.display()
        )));
    }
    let text = std::fs::read(path).map_err(failed)?;
    let invalid = |cause: String| {
        Failure::Usage(format!(
            "{} is not the manifest of a ClusterExtension: {cause}",
            path.display()
        ))
    };
    let value = olm_yaml::document(&text, &olm_yaml::Limits::default())
        .map_err(|error| invalid(error.to_string()))?;
    if value.get("kind").and_then(Value::as_str) != Some("ClusterExtension") {
        return Err(invalid("its kind is another one".to_owned()));
    }
    let extension: ClusterExtension =
        serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
    if extension.metadata.name.as_ref().is_none_or(String::is_empty) {
        return Err(invalid("it has no name".to_owned()));
    }
    Ok(extension)
}

/// Adds the roles for custom resources, as operator-controller does unless its flag or the rights of a service account forbid it. Where
/// the newest revision does not tell, the plan says so.
fn add_crd_roles(extension: &ClusterExtension, change: &mut Change) {
    let roles = crd_roles(&change.to.objects);
    if roles.is_empty() {
        return;
    }
    let has_account = extension.spec.service_account.is_some();
    let added = match &change.from {
        None => !has_account,
        Some(side) => without_crd_roles(side.objects.clone()).len() < side.objects.len(),
    };
    if added {
        change.to.objects.extend(roles);
    } else {
        change.unchecked.push(format!(
            "{} ClusterRoles for custom resources, such as {}: operator-controller adds them if its flags and the service account \
             permit it",
            roles.len(),
            roles.first().map_or("", metadata_name)
        ));
    }
}

/// Returns the Active revision with the highest number.
pub(crate) async fn newest(cluster: &Cluster, extension: &str) -> Result<Option<ClusterObjectSet>, Failure> {
    Ok(active(cluster.revisions(Some(extension)).await?).pop())
}

/// Returns the Active revisions among all of an extension, in their order.
fn active(mut revisions: Vec<ClusterObjectSet>) -> Vec<ClusterObjectSet> {
    revisions.retain(|revision| {
        revision.spec.lifecycle_state != LifecycleState::Archived
            && revision.metadata.deletion_timestamp.is_none()
    });
    revisions
}

/// Returns the issuer of certificates: that of the command line, or of the cluster by the gates. If the gates are assumed, the issuer of the
/// newest revision is better evidence; without one, a sentence says that the issuer is assumed.
async fn issuer(
    args: &PlanArgs,
    cluster: &Cluster,
    gates: &Gates,
    newest: Option<&ClusterObjectSet>,
) -> Result<(Issuer, Option<String>), Failure> {
    if let Some(issuer) = args.certificates {
        return Ok((issuer, None));
    }
    let assumption = gates.assumption();
    let annotations = newest.and_then(|newest| newest.metadata.annotations.as_ref());
    let recorded = annotations.and_then(|known| known.get(keys::WEBHOOK_CERTIFICATES_ANNOTATION));
    let recorded = match recorded.filter(|_| assumption.is_some()).map(String::as_str) {
        Some("cert-manager") => Some(Issuer::CertManager),
        Some("service-ca") => Some(Issuer::ServiceCa),
        Some("own") => Some(Issuer::Own),
        // The newest bundle needs no certificates; the next one may.
        _ => None,
    };
    Ok(match recorded {
        Some(issuer) => (issuer, None),
        None => (cluster.issuer(gates).await?, assumption),
    })
}

/// Returns the bundle and the objects of a revision.
pub(crate) async fn present(
    cluster: &Cluster,
    revision: &ClusterObjectSet,
    unchecked: &mut Vec<String>,
) -> Result<Side, Failure> {
    let bundle = BundleIdentity::recorded(revision);
    let listed = revision.spec.object_count();
    let phases = cluster.objects(revision).await?;
    let objects: Vec<Value> = phases.into_iter().flat_map(|phase| phase.objects).collect();
    let missing = listed.saturating_sub(objects.len());
    if missing > 0 {
        unchecked.push(format!(
            "{missing} of {listed} objects of revision {} cannot be read from its Secrets: the plan shows them as created, not as \
             changed or deleted",
            bundle.revision.as_deref().unwrap_or_default()
        ));
    }
    Ok(Side { bundle, objects })
}

/// The wanted bundle.
struct Target {
    bundle: Bundle,
    namespace: String,
    side: Side,
}

fn has_webhooks(target: &Target) -> bool {
    !serving_certificates(&target.bundle, &target.namespace).is_empty()
}

/// Returns true if gates of operator-controller decide if the bundle is installed with this configuration.
fn needs_permission(bundle: &Bundle, config: Option<&Value>) -> bool {
    config.is_some_and(|config| config.get("deploymentConfig").is_some())
        || !bundle.install_modes().contains(&InstallMode::AllNamespaces)
}

/// Returns the wanted bundle, rendered into the namespace of `change`, or into the one that the bundle suggests if the extension
/// `creates` its namespace and none was chosen before.
async fn target(
    args: &PlanArgs,
    found: &Resolution,
    request: &Request,
    change: &Change,
    (config, creates): (Configuration, bool),
    issuer: Issuer,
) -> Result<Target, Failure> {
    let content = bundle_of_image(&found.image, &args.source.access).await?;
    let known = change
        .from
        .as_ref()
        .map(|side| side.objects.as_slice())
        .unwrap_or_default();
    let place = if creates {
        InstallInto::Created(Some(change.namespace.as_str()).filter(|chosen| !chosen.is_empty()))
    } else {
        InstallInto::Existing(&change.namespace)
    };
    let rendered = rendered_with(&content.files, place, config, |bundle, namespace| {
        let mut provided = certificates(bundle, namespace, issuer);
        if let Certificates::Own(own) = &mut provided {
            for (secret, certificate) in own {
                if let Some(present) = live::certificate(known, secret) {
                    *certificate = present;
                }
            }
        }
        provided
    });
    let rendered = rendered.map_err(|error| {
        Failure::Refused(format!(
            "bundle {} cannot be installed: {}",
            found.bundle,
            error.message()
        ))
    })?;
    let side = Side {
        bundle: identity::of_resolved(found, request, content.image),
        objects: rendered.objects,
    };
    Ok(Target {
        bundle: rendered.bundle,
        namespace: rendered.namespace,
        side,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::AccessArgs;
    use crate::source::stand_in;

    #[tokio::test]
    async fn without_catalogs_the_plan_is_about_the_bundle_that_stays() {
        let cluster = stand_in::with_lost_secret().await;
        let args = PlanArgs::of("kite", AccessArgs::default());
        let gates = Gates::shipped();
        let planned = async |to: Option<&str>| {
            let (extension, installed) = wanted(&cluster, &args, Some("kite"), to).await?;
            let input = ResolutionInput::of(&cluster, &args.source, extension, installed, &gates).await?;
            let extension = input.extension.clone().unwrap_or_default();
            chosen(&cluster, &args, &extension, &input).await
        };
        let (found, sentence) = planned(None).await.unwrap();
        assert_eq!(found.bundle.as_str(), "kite.v1.0.0");
        assert_eq!(
            sentence.as_deref(),
            Some("upgrades: no catalog is selected, so bundle kite.v1.0.0 (1.0.0) stays")
        );
        let refused = planned(Some("2.0.0")).await.unwrap_err();
        assert!(matches!(refused, Failure::Refused(_)), "{refused}");
    }
}
