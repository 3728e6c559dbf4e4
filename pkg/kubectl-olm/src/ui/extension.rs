//! One extension as a page shows it.

use kube::ResourceExt as _;
use olm_api::{ClusterExtension, UpgradeConstraintPolicy};
use olm_resolve::Installed;
use olm_status::overview::Overview;
use olm_ui::live::{ChoiceView, ExtensionView, WhatIf};

use super::tables;
use crate::failure::Failure;
use crate::lifecycle;
use crate::observed::Tree;
use crate::resolution_input::ResolutionInput;
use crate::resolve_report::ResolveReport;
use crate::source::{Cluster, Sources};

/// Reads everything about an extension at once. A part that cannot be read is a sentence instead.
pub(super) async fn view(
    cluster: &Cluster,
    extension: ClusterExtension,
    installed: Option<Installed>,
) -> ExtensionView {
    let name = extension.name_any();
    let told = |failure: Failure| failure.message();
    let (tree, revisions, events, choice) = tokio::join!(
        Tree::read(cluster, &name),
        cluster.revisions(Some(&name)),
        cluster.events(&name),
        choice(cluster, extension.clone(), installed.clone()),
    );
    ExtensionView {
        overview: Overview::new(&extension),
        conditions: tables::conditions(extension.conditions()),
        phases: tree.map(|tree| tables::phases(&tree)).map_err(told),
        revisions: revisions
            .map(|sets| tables::revisions(&sets))
            .map_err(|error| told(error.into())),
        events: events
            .map(|events| tables::events(&events))
            .map_err(|error| told(error.into())),
        choice: choice.map_err(told),
        request: request(&extension, installed.as_ref()),
    }
}

/// Asks the resolver about the extension as it is.
async fn choice(
    cluster: &Cluster,
    extension: ClusterExtension,
    installed: Option<Installed>,
) -> Result<ChoiceView, Failure> {
    let name = extension.name_any();
    let sources = Sources {
        catalogs: cluster.catalogs().await?,
    };
    let stays = installed.as_ref().map(|installed| installed.name.clone());
    let input = ResolutionInput::with(&sources, extension, installed).await?;
    let mut report = ResolveReport::new(input.request, &input.inputs, None);
    report.add_support(&input.inputs, lifecycle::today());
    let moves = report
        .result
        .as_ref()
        .is_ok_and(|found| Some(&found.bundle) != stays.as_ref());
    if moves {
        report.check_dependencies_on(cluster, Some(&name)).await?;
    }
    Ok(tables::choice(&report))
}

/// Returns the request of an extension as people write it.
fn request(extension: &ClusterExtension, installed: Option<&Installed>) -> Option<WhatIf> {
    let filter = extension.spec.source.catalog.as_ref()?;
    let installed = installed.map(|installed| format!("{}@{}", installed.name, installed.version));
    Some(WhatIf {
        package: filter.package_name.clone(),
        installed: installed.unwrap_or_default(),
        range: filter.version.clone().unwrap_or_default(),
        channels: filter.channels.clone().unwrap_or_default().join(", "),
        self_certified: filter.upgrade_constraint_policy == Some(UpgradeConstraintPolicy::SelfCertified),
    })
}
