//! Handlers of the pages.

use axum::Extension;
use axum::extract::{Path, Query};
use axum::response::{Redirect, Response};
use olm_status::overview::Overview;
use olm_ui::live::{WhatIf, account_page, cluster_upgrade_page, extensions_page, what_if_page};
use olm_ui::{CatalogView, ICON, Medium, SCRIPT, STYLE, Search, catalogs_page, packages_page};
use serde::Deserialize;

use super::answer::{absent as not_found, failed, file, kept, page};
use super::{Read, Shared, account as own, extension as one, package as content, resolver, tables};
use crate::failure::Failure;
use crate::observed::ClusterUpgrade;

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

pub(super) async fn extensions(Extension(reader): Read) -> Response {
    let read = reader.cluster.extensions().await;
    answered(read.map_err(Failure::from).map(|found| {
        let seen: Vec<Overview> = found.iter().map(Overview::new).collect();
        page(extensions_page(&seen).into_string())
    }))
}

pub(super) async fn extension(Extension(reader): Read, Path(file): Path<String>) -> Response {
    answered(one::page_of(&reader, &file).await)
}

pub(super) async fn plan(server: Shared, Extension(reader): Read, Path(file): Path<String>) -> Response {
    answered(server.plans.page_of(&reader, &file).await)
}

/// A search.
#[derive(Deserialize)]
pub(super) struct Words {
    #[serde(default)]
    q: String,
}

pub(super) async fn packages(
    server: Shared,
    Extension(reader): Read,
    Query(Words { q }): Query<Words>,
) -> Response {
    let contents = server.catalogs.read(&reader).await;
    answered(contents.map(|contents| {
        let search = Search::new(contents.views());
        page(packages_page(&q, &search.find(&q), &contents.remarks).into_string())
    }))
}

pub(super) async fn catalogs(server: Shared, Extension(reader): Read) -> Response {
    let contents = server.catalogs.read(&reader).await;
    answered(contents.map(|contents| {
        let views: Vec<&CatalogView> = contents.views().collect();
        page(catalogs_page(Medium::Live, &views, &contents.remarks).into_string())
    }))
}

pub(super) async fn package(
    server: Shared,
    Extension(reader): Read,
    Path((catalog, file)): Path<(String, String)>,
) -> Response {
    answered(content::page_of(&server.catalogs, &reader, &catalog, &file).await)
}

/// The extension from which a graph starts.
#[derive(Deserialize)]
pub(super) struct From {
    #[serde(default)]
    extension: String,
}

pub(super) async fn graph(
    server: Shared,
    Extension(reader): Read,
    Path((catalog, file)): Path<(String, String)>,
    Query(From { extension }): Query<From>,
) -> Response {
    answered(content::graph(&server.catalogs, &reader, (&catalog, &file), &extension).await)
}

pub(super) async fn icon(server: Shared, Extension(reader): Read, Path(name): Path<String>) -> Response {
    match server.catalogs.icon(&reader, &name).await {
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

pub(super) async fn what_if(Extension(reader): Read, Query(question): Query<Question>) -> Response {
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
        let answer = resolver::what_if(&reader.cluster, &asked).await;
        Some(answer.map_err(|failure| failure.message()))
    };
    page(what_if_page(&asked, answer.as_ref()).into_string())
}

/// The version to which the cluster would be upgraded.
#[derive(Deserialize)]
pub(super) struct Target {
    #[serde(default)]
    to: String,
}

pub(super) async fn cluster_upgrade(
    Extension(reader): Read,
    Query(Target { to }): Query<Target>,
) -> Response {
    let to = to.trim();
    let target = Some(to).filter(|to| !to.is_empty());
    let read = ClusterUpgrade::read(&reader.cluster, target).await;
    let view = read.map(|upgrade| tables::cluster_upgrade(&upgrade));
    page(cluster_upgrade_page(to, &view.map_err(|failure| failure.message())).into_string())
}

pub(super) async fn account(Extension(reader): Read) -> Response {
    page(account_page(&own::view(&reader).await).into_string())
}
