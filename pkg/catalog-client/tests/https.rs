//! Reads packages from an HTTPS server on loopback that behaves like catalogd.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    clippy::similar_names,
    clippy::unused_async,
    clippy::too_many_lines,
    reason = "tests may fail loudly"
)]

use std::{
    collections::HashMap,
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use olm_catalog_client::{CatalogClient, CatalogRef, ClientError, Limits, Trust};
use olm_fbc::PackageContent;
use olm_runtime::{
    serve,
    tls::{Issued, ServingCert, issue},
};
use tokio_util::sync::CancellationToken;

const ALL: &str = concat!(
    r#"{"defaultChannel":"stable","name":"app","schema":"olm.package"}"#,
    "\n",
    r#"{"entries":[{"name":"app.v1.0.0"}],"name":"stable","package":"app","schema":"olm.channel"}"#,
    "\n",
    r#"{"image":"quay.io/a/app@sha256:0","name":"app.v1.0.0","package":"app","properties":[{"type":"olm.package","value":{"packageName":"app","version":"1.0.0"}}],"schema":"olm.bundle"}"#,
    "\n",
    r#"{"name":"other","schema":"olm.package"}"#,
    "\n",
);

/// Server with configurable responses and a count of requests.
#[derive(Clone)]
struct Server(Arc<Inner>);

struct Inner {
    metas: Mutex<StatusCode>,
    all: Mutex<StatusCode>,
    content: Mutex<String>,
    asked: AtomicUsize,
    /// The server never answers.
    silent: AtomicBool,
    /// Token that requests must carry, if any.
    authorization: Mutex<Option<String>>,
}

impl Server {
    fn set(&self, metas: u16, all: u16) {
        *self.0.metas.lock().unwrap() = StatusCode::from_u16(metas).unwrap();
        *self.0.all.lock().unwrap() = StatusCode::from_u16(all).unwrap();
    }

    fn asked(&self) -> usize {
        self.0.asked.swap(0, Ordering::SeqCst)
    }
}

async fn metas(
    State(server): State<Server>,
    Path(_): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    server.0.asked.fetch_add(1, Ordering::SeqCst);
    if server.0.silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let status = *server.0.metas.lock().unwrap();
    if status != StatusCode::OK {
        return (status, "404 page not found\n").into_response();
    }
    let content = server.0.content.lock().unwrap().clone();
    let lines = content.lines().filter(|line| {
        query
            .iter()
            .all(|(key, value)| line.contains(&format!("\"{key}\":\"{value}\"")))
    });
    lines
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .into_response()
}

async fn known(State(server): State<Server>, request: Request, next: Next) -> Response {
    let wanted = server.0.authorization.lock().unwrap().clone();
    let brought = request.headers().get("authorization");
    let brought = brought.map(|value| value.to_str().unwrap().to_owned());
    if wanted.is_some() && wanted != brought {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

async fn all(State(server): State<Server>, Path(_): Path<String>) -> Response {
    server.0.asked.fetch_add(1, Ordering::SeqCst);
    let status = *server.0.all.lock().unwrap();
    (status, server.0.content.lock().unwrap().clone()).into_response()
}

fn certificate() -> Issued {
    issue(
        "localhost",
        &["localhost".to_owned(), "127.0.0.1".to_owned()],
        SystemTime::now(),
        Duration::from_hours(1),
    )
    .unwrap()
}

/// Starts the server; returns its port, and the token that stops it.
async fn start(server: &Server, issued: &Issued) -> (u16, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new()
        .route("/catalogs/{catalog}/api/v1/metas", get(metas))
        .route("/catalogs/{catalog}/api/v1/all", get(all))
        .layer(middleware::from_fn_with_state(server.clone(), known))
        .with_state(server.clone());
    let serving = ServingCert::fixed(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes()).unwrap();
    let ends = CancellationToken::new();
    let token = ends.clone();
    tokio::spawn(async move {
        serve::tls_on(
            "test",
            listener,
            router,
            &serving,
            serve::Limits::default(),
            token,
        )
        .await
    });
    (port, ends)
}

fn server() -> Server {
    Server(Arc::new(Inner {
        metas: Mutex::new(StatusCode::OK),
        all: Mutex::new(StatusCode::OK),
        content: Mutex::new(ALL.to_owned()),
        asked: AtomicUsize::new(0),
        silent: AtomicBool::new(false),
        authorization: Mutex::new(None),
    }))
}

fn catalog(port: u16, digest: &str) -> CatalogRef {
    CatalogRef {
        name: "cat".into(),
        base_url: format!("https://localhost:{port}/catalogs/cat"),
        digest: digest.to_owned(),
    }
}

/// Returns the content alone, current or stale.
async fn package(
    client: &CatalogClient,
    catalog: &CatalogRef,
    package: &str,
) -> Result<Option<Arc<PackageContent>>, ClientError> {
    Ok(client.package(catalog, &package.into()).await?.content)
}

fn trusting(issued: &Issued) -> Trust {
    let pem = issued.ca_pem.clone();
    Trust::provider(move || {
        let pem = pem.clone();
        async move { Ok(Some(pem)) }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_read_once_per_content() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let client = CatalogClient::new(trusting(&issued));
    let first = catalog(port, "sha256:1");

    let app = package(&client, &first, "app").await.unwrap().unwrap();
    assert_eq!((app.bundles.len(), app.channels.len()), (1, 1));
    assert!(app.package.is_some());
    assert_eq!(server.asked(), 2);
    assert!(Arc::ptr_eq(
        &app,
        &package(&client, &first, "app").await.unwrap().unwrap()
    ));
    assert!(package(&client, &first, "none").await.unwrap().is_none());
    assert_eq!(server.asked(), 2);
    assert!(package(&client, &first, "none").await.unwrap().is_none());
    assert_eq!(server.asked(), 0);

    // Other content is read again; concurrent readers ask once.
    let second = catalog(port, "sha256:2");
    let together = futures::future::join_all((0..8).map(|_| package(&client, &second, "app"))).await;
    assert!(together.iter().all(Result::is_ok));
    assert_eq!(server.asked(), 2);
    client.forget(&"cat".into());
    package(&client, &second, "app").await.unwrap();
    assert_eq!(server.asked(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_packages_are_read_once_per_content() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let client = CatalogClient::new(trusting(&issued));
    let first = catalog(port, "sha256:1");
    for _ in 0..2 {
        let names = client.package_names(&first).await.unwrap();
        assert_eq!(names.to_vec(), ["app", "other"]);
    }
    assert_eq!(server.asked(), 1);
    client.package_names(&catalog(port, "sha256:2")).await.unwrap();
    assert_eq!(server.asked(), 1, "other content is read anew");
    client.forget(&"cat".into());
    server.set(404, 200);
    let refused = client.package_names(&first).await;
    assert!(
        matches!(refused, Err(ClientError::NoContent { .. })),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_deleted_catalog_is_dropped() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let client = CatalogClient::new(trusting(&issued));
    let catalog = catalog(port, "sha256:1");
    for asked in [1, 0] {
        client.providers(&catalog, "g", "v1", "Kind").await.unwrap();
        assert_eq!(server.asked(), asked);
    }
    client.forget(&"other".into());
    client.providers(&catalog, "g", "v1", "Kind").await.unwrap();
    assert_eq!(server.asked(), 0);
    client.forget(&"cat".into());
    client.providers(&catalog, "g", "v1", "Kind").await.unwrap();
    assert_eq!(server.asked(), 1, "who brings an API is asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn falls_back_to_the_whole_catalog_and_never_keeps_a_404() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let client = CatalogClient::new(trusting(&issued));
    let catalog = catalog(port, "sha256:1");

    server.set(404, 404);
    let error = package(&client, &catalog, "app").await.unwrap_err();
    assert!(
        matches!(error, ClientError::NoContent { .. }),
        "{}",
        error.message()
    );
    server.set(404, 200);
    let app = package(&client, &catalog, "app").await.unwrap().unwrap();
    assert_eq!(app.bundles.len(), 1);
    assert!(app.package.is_some());
    assert!(package(&client, &catalog, "none").await.unwrap().is_none());
    server.set(404, 503);
    let error = package(&client, &catalog, "other").await.unwrap_err();
    assert_eq!(
        error.message(),
        "error populating cache for catalog \"cat\": error: received unexpected response status code 503"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_file_is_read_for_each_request() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let client = CatalogClient::new(trusting(&issued)).with_token_file(Some(file.clone()));
    let catalog = catalog(port, "sha256:1");

    let error = package(&client, &catalog, "app").await.unwrap_err();
    assert!(matches!(error, ClientError::Token { .. }), "{}", error.message());
    std::fs::write(&file, "first\n").unwrap();
    *server.0.authorization.lock().unwrap() = Some("Bearer second".to_owned());
    let error = package(&client, &catalog, "app").await.unwrap_err();
    let text = error.message();
    assert!(
        text.starts_with(
            "error populating cache for catalog \"cat\": error: received unexpected response status code 401: catalogd does not accept the token"
        ),
        "{text}"
    );
    std::fs::write(&file, "second\n").unwrap();
    assert!(package(&client, &catalog, "app").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_catalog_keeps_its_last_good_content() {
    let (server, issued) = (server(), certificate());
    let (port, ends) = start(&server, &issued).await;
    let client = CatalogClient::new(trusting(&issued));
    let app = package(&client, &catalog(port, "sha256:1"), "app")
        .await
        .unwrap()
        .unwrap();
    package(&client, &catalog(port, "sha256:1"), "none")
        .await
        .unwrap();

    server.set(500, 500);
    let newer = catalog(port, "sha256:2");
    assert!(Arc::ptr_eq(
        &app,
        &package(&client, &newer, "app").await.unwrap().unwrap()
    ));
    // A package absent before may exist now.
    package(&client, &newer, "none").await.unwrap_err();
    package(&client, &newer, "other").await.unwrap_err();
    server.set(200, 200);
    assert!(!Arc::ptr_eq(
        &app,
        &package(&client, &newer, "app").await.unwrap().unwrap()
    ));

    ends.cancel();
    let nowhere = catalog(1, "sha256:3");
    let error = package(&client, &nowhere, "other").await.unwrap_err();
    assert!(
        matches!(error, ClientError::Refused { .. }),
        "{}",
        error.message()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_catalog_delays_no_other() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let limits = |time| Limits {
        reads: 1,
        time,
        ..Limits::default()
    };
    let (first, newer) = (catalog(port, "sha256:1"), catalog(port, "sha256:2"));
    let patient = Arc::new(CatalogClient::with_limits(
        trusting(&issued),
        limits(Duration::from_mins(5)),
    ));
    let hasty = CatalogClient::with_limits(trusting(&issued), limits(Duration::from_secs(1)));
    let app = package(&patient, &first, "app").await.unwrap().unwrap();
    // A busy machine may take longer for a handshake.
    while package(&hasty, &first, "app").await.is_err() {}
    server.0.silent.store(true, Ordering::SeqCst);

    // One read holds the only slot; cached content needs none.
    server.asked();
    let (holding, wanted) = (patient.clone(), newer.clone());
    let held = tokio::spawn(async move { holding.package(&wanted, &"other".into()).await });
    while server.asked() == 0 {
        tokio::task::yield_now().await;
    }
    let known = package(&patient, &first, "app").await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&app, &known));
    held.abort();

    // A read that times out fails like any other: stale content stands in if there is any.
    let answer = hasty.package(&newer, &"app".into()).await.unwrap();
    assert!(answer.content.is_some());
    assert_eq!(
        answer.former.unwrap().why,
        "catalogd did not answer in time for catalog \"cat\""
    );
    let error = hasty.package(&newer, &"other".into()).await.unwrap_err();
    assert!(
        matches!(error, ClientError::Timeout { .. }),
        "{}",
        error.message()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_are_read_again_when_tls_fails() {
    let (server, old, new) = (server(), certificate(), certificate());
    let (port, _ends) = start(&server, &new).await;
    let trusted = Arc::new(Mutex::new(None));
    let provided = trusted.clone();
    let client = CatalogClient::new(Trust::provider(move || {
        let now = provided.lock().unwrap().clone();
        async move { Ok(now) }
    }));
    let catalog = catalog(port, "sha256:1");
    for authority in [None, Some(old.ca_pem)] {
        *trusted.lock().unwrap() = authority;
        let error = package(&client, &catalog, "app").await.unwrap_err();
        assert!(matches!(error, ClientError::Tls { .. }), "{}", error.message());
    }
    *trusted.lock().unwrap() = Some(new.ca_pem);
    assert!(package(&client, &catalog, "app").await.unwrap().is_some());

    let broken = CatalogClient::new(Trust::provider(|| async { Err("no Secret".to_owned()) }));
    let error = package(&broken, &catalog, "app").await.unwrap_err();
    assert!(matches!(error, ClientError::Trust { .. }), "{}", error.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_capped_and_must_decode() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let limits = Limits {
        package: 100,
        ..Limits::default()
    };
    let client = CatalogClient::with_limits(trusting(&issued), limits);
    let error = package(&client, &catalog(port, "1"), "app").await.unwrap_err();
    assert!(
        matches!(error, ClientError::TooLarge { limit: 100, .. }),
        "{}",
        error.message()
    );

    // 4 MiB of text that would be 160 MiB of values.
    let values = vec!["[0]"; 1 << 20].join(",");
    let bundle = format!(
        "{{\"schema\":\"olm.bundle\",\"package\":\"app\",\"name\":\"app.v1\",\"properties\":[{{\"type\":\"x\",\"value\":[{values}]}}]}}\n"
    );
    bundle.clone_into(&mut server.0.content.lock().unwrap());
    let client = CatalogClient::new(trusting(&issued));
    let error = package(&client, &catalog(port, "1"), "app").await.unwrap_err();
    assert!(
        matches!(error, ClientError::TooLarge { .. }),
        "{}",
        error.message()
    );

    let client = CatalogClient::new(trusting(&issued));
    "{\"schema\":\"olm.package\",\"name\":\"app\"".clone_into(&mut server.0.content.lock().unwrap());
    let error = package(&client, &catalog(port, "1"), "app").await.unwrap_err();
    assert!(matches!(error, ClientError::Decode { .. }), "{}", error.message());
}

/// Lifecycles come with the package's other metas. Hostile ones are left out, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn lifecycles_cost_no_request_and_never_break_their_package() {
    let (server, issued) = (server(), certificate());
    let (port, _ends) = start(&server, &issued).await;
    let lifecycles = |versions: &str| {
        format!(
            "{{\"package\":\"app\",\"schema\":\"io.openshift.operators.lifecycles.v1alpha1\",\"versions\":{versions}}}\n"
        )
    };
    // 4 MiB of text that would be 160 MiB of values.
    let hostile = format!("[{}]", vec!["[0]"; 1 << 20].join(","));
    let readable = lifecycles(
        "[{\"name\":\"1.0\",\"phases\":[{\"name\":\"Full support\",\"endDate\":\"2026-12-31\"}]}]",
    );
    let content = format!("{ALL}{}{readable}", lifecycles(&hostile));
    content.clone_into(&mut server.0.content.lock().unwrap());
    let client = CatalogClient::new(trusting(&issued));
    let app = package(&client, &catalog(port, "1"), "app")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(server.asked(), 2);
    assert_eq!((app.bundles.len(), app.channels.len()), (1, 1));
    assert_eq!(app.lifecycles.versions().count(), 1);
    assert_eq!(
        app.lifecycles.ignored().len(),
        1,
        "{:?}",
        app.lifecycles.ignored()
    );
}
