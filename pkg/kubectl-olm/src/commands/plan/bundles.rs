//! Plan between two bundles, without a cluster.

use olm_bundle::Bundle;
use olm_bundle::crd_safety::Rules;
use olm_plan::{BundleIdentity, Change, CrdVerdict, Plan, Side, compare_crds};
use olm_text::{counted, head};
use serde_json::Value;

use crate::cli::bundle::Issuer;
use crate::cli::plan::PlanArgs;
use crate::commands::bundle::{Configuration, InstallInto, rendered_files};
use crate::failure::Failure;
use crate::source::bundle_content;

/// Maximum length of a finding in a refusal, in bytes.
const FINDING_LIMIT: usize = 500;

/// Compares two bundles that are rendered with the same namespace and configuration.
pub(super) async fn plan(args: &PlanArgs, from: &str, to: &str) -> Result<Plan, Failure> {
    let namespace = args.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let config = Configuration::read(args.config.as_deref(), &args.selected_namespaces)?;
    let issuer = args.certificates.unwrap_or(Issuer::Own);
    let mut sides = Vec::new();
    for word in [from, to] {
        let content = bundle_content(word, &args.source.access).await?;
        let place = InstallInto::Existing(&namespace);
        let rendered = rendered_files(&content.files, place, config.clone(), issuer).map_err(|error| {
            Failure::Refused(format!("bundle {word} cannot be installed: {}", error.message()))
        })?;
        sides.push(side(&rendered.bundle, content.image, rendered.objects));
    }
    let mut sides = sides.into_iter();
    let (Some(from), Some(to)) = (sides.next(), sides.next()) else {
        return Err(Failure::Usage("give two bundles".to_owned()));
    };
    let crds = compare_crds(&from.objects, &to.objects, Rules::Ours);
    Ok(Change {
        namespace,
        config: config.inline,
        refusals: refusals(&crds),
        crds,
        from: Some(from),
        to,
        ..Change::default()
    }
    .plan())
}

fn side(bundle: &Bundle, image: Option<String>, objects: Vec<Value>) -> Side {
    Side {
        bundle: BundleIdentity {
            package: bundle.package().to_owned(),
            name: bundle.csv_name().to_owned(),
            version: bundle.version().to_owned(),
            image,
            ..BundleIdentity::default()
        },
        objects,
    }
}

/// Returns one refusal for each CRD with findings.
pub(super) fn refusals(crds: &[CrdVerdict]) -> Vec<String> {
    let refusal = |crd: &CrdVerdict| {
        let first = crd.findings.first()?.to_string();
        let count = counted(crd.findings.len(), "finding");
        let first = head(&first, FINDING_LIMIT);
        Some(format!(
            "CRD {:?} is not safe to upgrade ({count}): {first}",
            crd.crd
        ))
    };
    crds.iter().filter_map(refusal).collect()
}
