//! Handlers of the pages.

use axum::extract::{Path, Query};
use axum::response::{Redirect, Response};
use olm_graph::{build, svg};
use olm_resolve::{Request, Selector};
use olm_status::overview::Overview;
use olm_text::name::PackageName;
use olm_ui::live::{
    ChoiceView, WhatIf, cluster_upgrade_page, extension_page, extensions_page, plan_page, what_if_page,
};
use olm_ui::{
    CatalogView, Hit, ICON, Installed, Medium, SCRIPT, STYLE, Search, Slug, catalogs_page, has_picture,
    package_page, packages_page,
};
use serde::Deserialize;

use super::answer::{absent as not_found, failed, file, kept, page};
use super::{Server, Shared, extension as one, tables};
use crate::cli::plan::PlanArgs;
use crate::cli::{Policy, RequestArgs};
use crate::commands::graph::explain;
use crate::commands::plan::cluster::plan_of;
use crate::failure::Failure;
use crate::lifecycle::today;
use crate::observed::ClusterUpgrade;
use crate::plan_report::Document;
use crate::resolution_input::ResolutionInput;
use crate::resolve_report::{ResolveReport, request};
use crate::source::Sources;
use crate::spec_range;

pub(super) async fn root() -> Redirect {
    Redirect::to("/extensions.html")
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

pub(super) async fn own_icon() -> Response {
    file("image/svg+xml", ICON)
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn absent() -> Response {
    not_found("There is no such page.")
}

/// Returns the answer, or the page of the failure.
fn answered(found: Result<Response, Failure>) -> Response {
    found.unwrap_or_else(|failure| failed(&failure))
}

pub(super) async fn extensions(server: Shared) -> Response {
    let read = server.cluster.extensions().await;
    answered(read.map_err(Failure::from).map(|found| {
        let seen: Vec<Overview> = found.iter().map(Overview::new).collect();
        page(extensions_page(&seen).into_string())
    }))
}

pub(super) async fn extension(server: Shared, Path(file): Path<String>) -> Response {
    answered(server.extension_page(&file).await)
}

pub(super) async fn plan(server: Shared, Path(file): Path<String>) -> Response {
    answered(server.plan_page(&file).await)
}

/// A search.
#[derive(Deserialize)]
pub(super) struct Words {
    #[serde(default)]
    q: String,
}

pub(super) async fn packages(server: Shared, Query(Words { q }): Query<Words>) -> Response {
    let contents = server.catalogs.read(&server.cluster).await;
    answered(contents.map(|contents| {
        let search = Search::new(contents.views.iter().map(AsRef::as_ref));
        page(packages_page(&q, &search.find(&q), &contents.remarks).into_string())
    }))
}

pub(super) async fn catalogs(server: Shared) -> Response {
    let contents = server.catalogs.read(&server.cluster).await;
    answered(contents.map(|contents| {
        let views: Vec<&CatalogView> = contents.views.iter().map(AsRef::as_ref).collect();
        page(catalogs_page(Medium::Live, &views, &contents.remarks).into_string())
    }))
}

pub(super) async fn package(server: Shared, Path((catalog, file)): Path<(String, String)>) -> Response {
    answered(server.package_page(&catalog, &file).await)
}

/// The extension from which a graph starts.
#[derive(Deserialize)]
pub(super) struct From {
    #[serde(default)]
    extension: String,
}

pub(super) async fn graph(
    server: Shared,
    Path((catalog, file)): Path<(String, String)>,
    Query(From { extension }): Query<From>,
) -> Response {
    answered(server.graph(&catalog, &file, &extension).await)
}

pub(super) async fn icon(server: Shared, Path(name): Path<String>) -> Response {
    match server.catalogs.icon(&name).await {
        Some(icon) => kept(file(icon.media_type, icon.bytes)),
        None => not_found("No package that was shown has this icon."),
    }
}

/// A question to the resolver.
#[derive(Deserialize)]
pub(super) struct Question {
    #[serde(default)]
    package: String,
    #[serde(default)]
    installed: String,
    #[serde(default)]
    range: String,
    #[serde(default)]
    channels: String,
    #[serde(default)]
    policy: String,
}

pub(super) async fn what_if(server: Shared, Query(question): Query<Question>) -> Response {
    let asked = WhatIf {
        self_certified: question.policy == "SelfCertified",
        package: question.package,
        installed: question.installed,
        range: question.range,
        channels: question.channels,
    };
    let answer = if asked.package.trim().is_empty() {
        None
    } else {
        Some(server.resolve(&asked).await.map_err(|failure| failure.message()))
    };
    page(what_if_page(&asked, answer.as_ref()).into_string())
}

/// The version to which the cluster would be upgraded.
#[derive(Deserialize)]
pub(super) struct Target {
    #[serde(default)]
    to: String,
}

pub(super) async fn cluster_upgrade(server: Shared, Query(Target { to }): Query<Target>) -> Response {
    let to = to.trim();
    let target = Some(to).filter(|to| !to.is_empty());
    let read = ClusterUpgrade::read(&server.cluster, target).await;
    let view = read.map(|upgrade| tables::cluster_upgrade(&upgrade));
    page(cluster_upgrade_page(to, &view.map_err(|failure| failure.message())).into_string())
}

impl Server {
    /// Returns the name of the extension whose pages have this slug.
    async fn extension_of(&self, slug: &str) -> Result<Option<String>, Failure> {
        let extensions = self.cluster.extensions().await?;
        let mut names = extensions.iter().filter_map(|one| one.metadata.name.as_deref());
        Ok(names.find(|name| is(name, slug)).map(ToOwned::to_owned))
    }

    async fn extension_page(&self, file: &str) -> Result<Response, Failure> {
        let name = self
            .extension_of(file.strip_suffix(".html").unwrap_or_default())
            .await?;
        let found = match name {
            Some(name) => self.cluster.extension(&name).await?,
            None => None,
        };
        let Some((extension, installed)) = found else {
            return Ok(not_found("The cluster has no such extension."));
        };
        let view = Box::pin(one::view(&self.cluster, extension, installed)).await;
        Ok(page(extension_page(&view).into_string()))
    }

    async fn plan_page(&self, file: &str) -> Result<Response, Failure> {
        let Some(name) = self
            .extension_of(file.strip_suffix(".html").unwrap_or_default())
            .await?
        else {
            return Ok(not_found("The cluster has no such extension."));
        };
        let args = PlanArgs::of(&name, self.access.clone());
        let plan = Box::pin(plan_of(&self.cluster, &args, Some(&name), None, &[])).await;
        let view = plan.map(|plan| tables::plan(Document::new(&plan)));
        let shown = plan_page(&name, &view.map_err(|failure| failure.message()));
        Ok(page(shown.into_string()))
    }

    async fn package_page(&self, catalog: &str, file: &str) -> Result<Response, Failure> {
        let contents = self.catalogs.read(&self.cluster).await?;
        let views = contents.views.iter().map(AsRef::as_ref);
        let Some(hit) = file
            .strip_suffix(".html")
            .and_then(|package| find(views, catalog, package))
        else {
            return Ok(not_found("No catalog of the cluster has such a package."));
        };
        // Without the right to list extensions, the page says nothing about them.
        let extensions = self.cluster.extensions().await.unwrap_or_default();
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

    async fn graph(&self, catalog: &str, file: &str, extension: &str) -> Result<Response, Failure> {
        let contents = self.catalogs.read(&self.cluster).await?;
        let views = contents.views.iter().map(AsRef::as_ref);
        let hit = file
            .strip_suffix(".svg")
            .and_then(|package| find(views, catalog, package));
        let Some(hit) = hit.filter(|hit| has_picture(&hit.package.content)) else {
            return Ok(not_found("There is no such graph."));
        };
        let mut graph = build(hit.catalog, &hit.package.content, &[]);
        if let Some(name) = self.extension_of(extension).await?
            && let Some((extension, Some(installed))) = self.cluster.extension(&name).await?
        {
            let sources = self.sources().await?;
            let input = ResolutionInput::with(&sources, extension, None).await?;
            explain(&mut graph, input.request, installed, &input.inputs);
        }
        Ok(self::file("image/svg+xml", svg(&graph)))
    }

    async fn sources(&self) -> Result<Sources, Failure> {
        Ok(Sources {
            catalogs: self.cluster.catalogs().await?,
        })
    }

    /// Asks the resolver.
    async fn resolve(&self, asked: &WhatIf) -> Result<ChoiceView, Failure> {
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
        let sources = self.sources().await?;
        let inputs = sources.lookup(&package, &Selector::default()).await;
        let request = Request {
            similar: sources.similar(&package, &Selector::default(), &inputs).await,
            ..request(&package, &args, &inputs)?
        };
        let mut report = ResolveReport::new(request, &inputs, None);
        report.add_support(&inputs, today());
        report.check_dependencies_on(&self.cluster, None).await?;
        Ok(tables::choice(&report))
    }
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
