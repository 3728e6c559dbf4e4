//! Which path is what.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::Response,
    routing::any,
};

use super::{Metrics, content, metrics, path, query, reply};
use crate::storage::{CatalogName, Generation, Store};

/// The content API over what `store` holds.
pub fn router(store: Arc<Store>, metrics: Metrics) -> Router {
    let routes = Router::new()
        .route("/catalogs/{catalog}/api/v1/all", any(all))
        .route("/catalogs/{catalog}/api/v1/metas", any(metas))
        .fallback(async || reply::no_page())
        .with_state(store);
    // Paths are cleaned before they are routed, so the routes are a service of the outer router.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(path::clean_paths))
        .layer(middleware::from_fn(vary))
        .layer(middleware::from_fn_with_state(metrics, metrics::observe))
}

/// Caches must keep the forms of an answer apart.
async fn vary(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

async fn all(
    State(store): State<Arc<Store>>,
    Path(catalog): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    match allowed(&method)
        .and_then(|()| name(catalog))
        .and_then(|name| served(&store, &name))
    {
        Ok(generation) => content::all(generation, &method, &headers),
        Err(refusal) => *refusal,
    }
}

async fn metas(
    State(store): State<Arc<Store>>,
    Path(catalog): Path<String>,
    RawQuery(text): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let found = allowed(&method).and_then(|()| name(catalog)).and_then(|name| {
        let filter = query::filter(text.as_deref()).ok_or_else(|| Box::new(reply::bad_request()))?;
        Ok((served(&store, &name)?, filter))
    });
    match found {
        Ok((generation, filter)) => content::metas(generation, &method, &headers, filter).await,
        Err(refusal) => *refusal,
    }
}

fn allowed(method: &Method) -> Result<(), reply::Refusal> {
    if matches!(*method, Method::GET | Method::HEAD) {
        Ok(())
    } else {
        Err(Box::new(reply::wrong_method()))
    }
}

fn name(catalog: String) -> Result<CatalogName, reply::Refusal> {
    CatalogName::new(catalog).map_err(|error| {
        Box::new(reply::text(
            StatusCode::BAD_REQUEST,
            &format!("invalid catalog name: {error}"),
        ))
    })
}

fn served(store: &Store, name: &CatalogName) -> Result<Arc<Generation>, reply::Refusal> {
    store.get(name).ok_or_else(|| Box::new(reply::no_catalog()))
}
