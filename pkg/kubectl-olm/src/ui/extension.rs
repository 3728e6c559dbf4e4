//! One extension as a page shows it.

use axum::response::Response;
use kube::ResourceExt as _;
use olm_api::{ClusterExtension, UpgradeConstraintPolicy};
use olm_resolve::Installed;
use olm_status::overview::Overview;
use olm_ui::Slug;
use olm_ui::live::{ExtensionView, WhatIf, extension_page};

use super::answer::{absent, page};
use super::{Reader, resolver, tables};
use crate::failure::Failure;
use crate::observed::Tree;
use crate::source::Cluster;

/// Returns the extension whose pages have this slug.
///
/// # Errors
/// The extensions cannot be listed.
pub(super) async fn find(cluster: &Cluster, slug: &str) -> Result<Option<ClusterExtension>, Failure> {
    let extensions = cluster.extensions().await?;
    let is_meant = |one: &ClusterExtension| Slug::new(&one.name_any()).to_string() == slug;
    Ok(extensions.into_iter().find(is_meant))
}

/// Returns the page with a file name.
///
/// # Errors
/// The cluster cannot be read.
pub(super) async fn page_of(reader: &Reader, file: &str) -> Result<Response, Failure> {
    let cluster = &reader.cluster;
    let slug = file.strip_suffix(".html").unwrap_or_default();
    let Some(extension) = find(cluster, slug).await? else {
        return Ok(absent("The cluster has no such extension."));
    };
    let installed = cluster.installed(&extension).await?;
    let view = Box::pin(view(cluster, extension, installed)).await;
    Ok(page(extension_page(&view).into_string()))
}

/// Reads everything about an extension at once. A part that cannot be read is a sentence instead.
async fn view(cluster: &Cluster, extension: ClusterExtension, installed: Option<Installed>) -> ExtensionView {
    let name = extension.name_any();
    let told = |failure: Failure| failure.message();
    let (tree, revisions, events, choice) = tokio::join!(
        Tree::read(cluster, &name),
        cluster.revisions(Some(&name)),
        cluster.events(&name),
        resolver::of_extension(cluster, extension.clone(), installed.clone()),
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
