//! Questions to the resolver, about an extension as it is and about requests of people.

use kube::ResourceExt as _;
use olm_api::ClusterExtension;
use olm_resolve::{CatalogInput, Installed, Request, Selector};
use olm_text::name::PackageName;
use olm_ui::live::{ChoiceView, WhatIf};

use super::tables;
use crate::cli::{Policy, RequestArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::lifecycle::today;
use crate::resolution_input::ResolutionInput;
use crate::resolve_report::{ResolveReport, request};
use crate::source::{Cluster, Sources};
use crate::spec_range;

/// Asks about an extension as it is.
///
/// # Errors
/// The cluster cannot be read.
pub(super) async fn of_extension(
    cluster: &Cluster,
    extension: ClusterExtension,
    installed: Option<Installed>,
) -> Result<ChoiceView, Failure> {
    let name = extension.name_any();
    let sources = Sources::of_cluster(cluster).await?;
    let gates = cluster.gates().await;
    let input = ResolutionInput::with(&sources, extension, installed, &gates).await?;
    answer(cluster, input.request, &input.inputs, &gates, Some(&name)).await
}

/// Asks what people ask.
///
/// # Errors
/// The request cannot be read, or the cluster cannot.
pub(super) async fn what_if(cluster: &Cluster, asked: &WhatIf) -> Result<ChoiceView, Failure> {
    let package = PackageName::from(asked.package.trim());
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let range = given(&asked.range).map(|range| spec_range::flag(&range));
    let args = RequestArgs {
        installed: given(&asked.installed),
        range: range.transpose().map_err(Failure::Usage)?,
        channels: asked.channels.split(',').filter_map(given).collect(),
        policy: if asked.self_certified {
            Policy::SelfCertified
        } else {
            Policy::CatalogProvided
        },
        ..RequestArgs::default()
    };
    let sources = Sources::of_cluster(cluster).await?;
    let inputs = sources.lookup(&package, &Selector::default()).await;
    let gates = cluster.gates().await;
    let request = Request {
        similar: sources.similar(&package, &Selector::default(), &inputs).await,
        ..request(&package, &args, &inputs, &gates)?
    };
    answer(cluster, request, &inputs, &gates, None).await
}

/// Resolves a request. The dependencies of a bundle that is not installed yet are checked on the cluster.
async fn answer(
    cluster: &Cluster,
    request: Request,
    inputs: &[CatalogInput],
    gates: &Gates,
    extension: Option<&str>,
) -> Result<ChoiceView, Failure> {
    let installed = request.installed.as_ref();
    let stays = installed.map(|installed| installed.name.clone());
    let mut report = ResolveReport::new(request, inputs, None);
    report.assumption = gates.assumption_on_releases(inputs);
    report.add_support(inputs, today());
    let moves = report
        .result
        .as_ref()
        .is_ok_and(|found| Some(&found.bundle) != stays.as_ref());
    if moves {
        report.check_dependencies_on(cluster, extension).await?;
    }
    Ok(tables::choice(&report))
}
