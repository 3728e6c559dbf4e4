//! Readers with and without rights.

use anyhow::{Context as _, Result, ensure};
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet};
use olm_harness::eventually;
use reqwest::header::{AUTHORIZATION, HOST};
use serde_json::json;
use tokio::time::timeout;

use super::PATIENCE;
use super::cluster::{SYSTEM, World};

/// Roles of somebody who sees everything.
pub(crate) const ALL: [&str; 2] = ["ClusterRole/olmv1-ui-reader", "Role/olmv1-ui-reader"];
/// Pages with something of the cluster.
const PAGES: [&str; 8] = [
    "/extensions.html",
    "/extensions/lamp.html",
    "/index.html",
    "/catalogs.html",
    "/packages/shop/lantern.html",
    "/graphs/shop/lantern.svg",
    "/what-if.html?package=lantern",
    "/cluster-upgrade.html",
];

/// Checks that the server's own account can read nothing that a page shows.
pub(crate) async fn the_servers_account_reads_nothing(world: &World) -> Result<()> {
    let client = world.client_of_server().await?;
    let all = ListParams::default();
    let refused = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 403);
    let extensions = Api::<ClusterExtension>::all(client.clone()).list(&all).await;
    ensure!(extensions.as_ref().is_err_and(refused), "{extensions:?}");
    let catalogs = Api::<ClusterCatalog>::all(client.clone()).list(&all).await;
    ensure!(catalogs.as_ref().is_err_and(refused), "{catalogs:?}");
    let revisions = Api::<ClusterObjectSet>::all(client.clone()).list(&all).await;
    ensure!(revisions.as_ref().is_err_and(refused), "{revisions:?}");
    let secrets: Api<Secret> = Api::namespaced(client, SYSTEM);
    ensure!(secrets.list(&all).await.as_ref().is_err_and(refused));
    ensure!(
        secrets
            .get("catalogd-service-own-cert")
            .await
            .as_ref()
            .is_err_and(refused)
    );
    let mut own = secrets.get("olmv1-ui-own-cert").await?;
    ensure!(own.type_.as_deref() == Some("Opaque"));
    own.metadata.name = Some("another".to_owned());
    own.metadata.resource_version = None;
    let created = secrets.create(&kube::api::PostParams::default(), &own).await;
    ensure!(created.as_ref().is_err_and(refused), "{created:?}");
    Ok(())
}

pub(crate) async fn nobody_is_answered_without_a_token(world: &World) -> Result<()> {
    for path in PAGES.iter().chain(&["/", "/account.html", "/events", "/none"]) {
        let answer = world.ask(path).send().await?;
        let status = answer.status();
        let page = answer.text().await?;
        ensure!(
            status == 401 && !page.contains("lamp"),
            "{path}: {status}: {page}"
        );
        ensure!(
            page.contains("Sign in") && page.contains("kubectl create token"),
            "{page}"
        );
    }
    let host = |name: &'static str| {
        let request = world.http1.get(world.address("/extensions.html"));
        request.header(HOST, name).send()
    };
    for foreign in [
        "evil.example",
        "olm.example.org.evil.example",
        "127.0.0.1.evil.example:8443",
    ] {
        ensure!(host(foreign).await?.status() == 421, "{foreign}");
    }
    for own in [
        "olm.example.org",
        "OLM.example.org:443",
        "localhost:1",
        "olmv1-ui.olmv1-system.svc",
    ] {
        ensure!(host(own).await?.status() == 401, "{own}");
    }
    let write = world.http.post(world.address("/extensions.html")).send().await?;
    ensure!(write.status() == 401, "{write:?}");
    Ok(())
}

pub(crate) async fn a_reader_sees_the_pages(world: &World) -> Result<()> {
    let token = world.reader("reader", &ALL).await?;
    world
        .shows(&token, "/extensions.html", &["lamp", "lantern"])
        .await?;
    world
        .shows(
            &token,
            "/extensions/lamp.html",
            &["lamp", "Why this version", "chosen"],
        )
        .await?;
    world
        .shows(&token, "/index.html?q=lantern", &["packages/shop/lantern.html"])
        .await?;
    world
        .shows(&token, "/catalogs.html", &["shop", "1 catalog"])
        .await?;
    world
        .shows(
            &token,
            "/packages/shop/lantern.html",
            &["lantern", "graphs/shop/lantern.svg"],
        )
        .await?;
    world.shows(&token, "/graphs/shop/lantern.svg", &["<svg"]).await?;
    world
        .shows(&token, "/what-if.html?package=lantern", &["chosen"])
        .await?;
    world.shows(&token, "/cluster-upgrade.html", &["From "]).await?;
    let account = ["system:serviceaccount:default:reader", "system:authenticated"];
    world.shows(&token, "/account.html", &account).await?;
    ensure!(!world.page(&token, "/account.html").await?.1.contains("Sign out"));
    let answer = world.with_token(&token, "/extensions.html").await?;
    let headers = answer.headers();
    ensure!(
        headers["cache-control"] == "no-store" && headers["x-frame-options"] == "DENY",
        "{headers:?}"
    );
    let policy = headers["content-security-policy"].to_str()?;
    ensure!(policy.starts_with("default-src 'none'; "), "{policy}");
    let write = world.http.post(world.address("/extensions.html"));
    let write = write
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .send()
        .await?;
    ensure!(write.status() == 405, "{write:?}");
    Ok(())
}

/// The server has the content of the catalog now, read for the reader before.
pub(crate) async fn what_is_cached_is_for_those_who_may_read_it(world: &World) -> Result<()> {
    let roles = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "lists-catalogs"},
        "rules": [{"apiGroups": ["olm.operatorframework.io"], "resources": ["clustercatalogs", "clusterextensions"],
            "verbs": ["get", "list", "watch"]}]});
    let api: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(world.client.clone());
    api.create(&kube::api::PostParams::default(), &serde_json::from_value(roles)?)
        .await?;
    let token = world.reader("lister", &["ClusterRole/lists-catalogs"]).await?;
    world.shows(&token, "/extensions.html", &["lamp"]).await?;
    for path in ["/index.html", "/index.html?q=lantern", "/catalogs.html"] {
        let (status, page) = world.page(&token, path).await?;
        ensure!(
            status == 200 && page.contains("catalogd-content-reader"),
            "{status}: {page}"
        );
        ensure!(!page.contains("packages/shop"), "{path}: {page}");
    }
    for path in [
        "/packages/shop/lantern.html",
        "/graphs/shop/lantern.svg",
        "/graphs/shop/lantern.svg?extension=lamp",
    ] {
        let (status, page) = world.page(&token, path).await?;
        ensure!(
            status == 404 && !page.contains("lantern"),
            "{path}: {status}: {page}"
        );
    }
    let (_, page) = world.page(&token, "/what-if.html?package=lantern").await?;
    ensure!(
        !page.contains("lantern.v") && page.contains("you may not read its content"),
        "{page}"
    );
    let (_, page) = world.page(&token, "/extensions/lamp.html").await?;
    ensure!(page.contains("lamp") && !page.contains("lantern.v"), "{page}");
    Ok(())
}

pub(crate) async fn a_stranger_sees_nothing(world: &World) -> Result<()> {
    let token = world.reader("stranger", &[]).await?;
    for path in PAGES {
        let (status, page) = world.page(&token, path).await?;
        // Pages that answer a question are shown, without an answer.
        let asked = path.starts_with("/what-if") || path.starts_with("/cluster-upgrade");
        ensure!(
            status == if asked { 200 } else { 403 },
            "{path}: {status}: {page}"
        );
        ensure!(page.contains("forbidden"), "{path}: {page}");
        ensure!(
            !page.contains("lamp") && !page.contains("lantern.v") && !page.contains("shop"),
            "{path}: {page}"
        );
    }
    world
        .shows(
            &token,
            "/account.html",
            &["default:stranger", "list clusterextensions"],
        )
        .await?;
    for (token, what) in [
        ("nonsense".to_owned(), "no token"),
        (format!("{token}x"), "a forged token"),
        (
            world.token("reader", &["another"]).await?,
            "a token for another audience",
        ),
    ] {
        let answer = world.with_token(&token, "/extensions.html").await?;
        ensure!(answer.status() == 401, "{what}: {answer:?}");
        ensure!(
            answer.headers()["www-authenticate"] == "Bearer",
            "{what}: {answer:?}"
        );
        ensure!(!answer.text().await?.contains("lamp"), "{what}");
    }
    Ok(())
}

pub(crate) async fn changes_reach_only_who_may_see_them(world: &World) -> Result<()> {
    let (reader, stranger) = (
        world.token("reader", &[]).await?,
        world.token("stranger", &[]).await?,
    );
    let mut seen = world.with_token(&reader, "/events").await?.bytes_stream();
    let unseen = world.with_token(&stranger, "/events").await?;
    ensure!(unseen.status() == 200, "{unseen:?}");
    let mut unseen = unseen.bytes_stream();
    for round in 0..3 {
        world
            .extension("lamp", json!({"round": round.to_string()}))
            .await?;
        let told = async {
            loop {
                let part = seen.next().await.context("the stream ended")??;
                if String::from_utf8_lossy(&part).contains("event: change") {
                    return anyhow::Ok(());
                }
            }
        };
        timeout(PATIENCE, told).await??;
    }
    while let Some(part) = unseen.next().now_or_never() {
        let part = part.context("the stream ended")??;
        ensure!(!String::from_utf8_lossy(&part).contains("change"), "{part:?}");
    }
    // The open one is the first of eight.
    let mut more = Vec::new();
    for _ in 0..7 {
        more.push(world.with_token(&reader, "/events").await?);
    }
    ensure!(more.iter().all(|answer| answer.status() == 200));
    ensure!(world.with_token(&reader, "/events").await?.status() == 429);
    drop(more);
    eventually(PATIENCE, "a closed stream is free again", async || {
        ensure!(world.with_token(&reader, "/events").await?.status() == 200);
        Ok(())
    })
    .await
}
