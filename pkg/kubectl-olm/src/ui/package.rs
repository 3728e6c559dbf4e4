//! One package as a page shows it, and its upgrade graph.

use axum::response::Response;
use kube::ResourceExt as _;
use olm_graph::{build, svg};
use olm_status::overview::Overview;
use olm_ui::{CatalogView, Hit, Installed, Medium, Slug, has_picture, package_page};

use super::answer::{absent, file as file_of, page};
use super::catalogs::Catalogs;
use super::{Reader, blocks, extension};
use crate::commands::graph::explain;
use crate::failure::Failure;
use crate::lifecycle::today;
use crate::resolution_input::ResolutionInput;
use crate::source::Sources;

/// Returns the page with a file name.
///
/// # Errors
/// The catalogs cannot be listed.
pub(super) async fn page_of(
    catalogs: &Catalogs,
    reader: &Reader,
    catalog: &str,
    file: &str,
) -> Result<Response, Failure> {
    let contents = catalogs.read(reader).await?;
    let Some(hit) = file
        .strip_suffix(".html")
        .and_then(|package| find(contents.views(), catalog, package))
    else {
        return Ok(absent("No catalog of the cluster has such a package."));
    };
    // Without the right to list extensions, the page says nothing about them.
    let extensions = reader.cluster.extensions().await.unwrap_or_default();
    let installed: Vec<Installed> = extensions
        .iter()
        .map(Overview::new)
        .filter(|seen| {
            *seen.package == *hit.package.listing.name
                && *seen.catalog == **hit.catalog
                && !seen.version.as_str().is_empty()
        })
        .map(|seen| Installed {
            extension: seen.name,
            version: seen.version.to_string(),
        })
        .collect();
    let shown = package_page(Medium::Live, hit.catalog, hit.package, &installed, today());
    Ok(page(shown.into_string()))
}

/// Returns the graph of the package with these slugs, from the installed version of an extension on, if its slug is not empty.
///
/// # Errors
/// The cluster cannot be read.
pub(super) async fn graph(
    catalogs: &Catalogs,
    reader: &Reader,
    (catalog, file): (&str, &str),
    of: &str,
) -> Result<Response, Failure> {
    let cluster = &reader.cluster;
    let contents = catalogs.read(reader).await?;
    let hit = file
        .strip_suffix(".svg")
        .and_then(|package| find(contents.views(), catalog, package));
    let Some(hit) = hit.filter(|hit| has_picture(&hit.package.content)) else {
        return Ok(absent("There is no such graph."));
    };
    let mut graph = build(hit.catalog, &hit.package.content, &[]);
    let found = if of.is_empty() {
        None
    } else {
        extension::find(cluster, of).await?
    };
    if let Some(extension) = found
        && let Some(installed) = cluster.installed(&extension).await?
    {
        let name = extension.name_any();
        let sources = Sources::of_cluster(cluster).await?;
        let gates = cluster.gates().await;
        let input = ResolutionInput::with(&sources, extension, None, &gates).await?;
        explain(&mut graph, input.request, installed, &input.inputs);
        blocks::mark(cluster, &name, &hit.package.content, &mut graph).await;
    }
    Ok(file_of("image/svg+xml", svg(&graph)))
}

fn is(name: &str, slug: &str) -> bool {
    Slug::new(name).to_string() == slug
}

/// Returns the package whose page has these slugs.
fn find<'a>(
    mut catalogs: impl Iterator<Item = &'a CatalogView>,
    catalog: &str,
    package: &str,
) -> Option<Hit<'a>> {
    let view = catalogs.find(|view| is(view.name(), catalog))?;
    let package = view
        .packages()
        .iter()
        .find(|found| is(&found.listing.name, package))?;
    Some(Hit {
        catalog: view.name(),
        package,
    })
}
