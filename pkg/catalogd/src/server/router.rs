//! Routes of the content API.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Path, RawQuery, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::Response,
    routing::any,
};
use olm_runtime::metrics::access::Access;

use super::{
    Metrics, access,
    content::{self, SharedState},
    graphql::GraphQl,
    listing, metrics, openapi, path,
    query::{self, QueryError},
    reply,
};
use crate::storage::{Generation, Store, ValidCatalogName};

const READ_METHODS: &str = "GET, HEAD";

/// Optional features of the content API.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Serves GraphQL.
    pub graphql: bool,
    /// Authorizer of requests; without it, every client may read.
    pub access: Option<Access>,
}

/// State of the handlers.
struct Api {
    store: Arc<Store>,
    shared: SharedState,
    graphql_service: Option<GraphQl>,
}

/// Returns the content API of `store` with the default options.
pub fn router(store: Arc<Store>, metrics: Metrics) -> Router {
    router_with(store, metrics, &Options::default())
}

/// Returns the content API of `store`.
pub fn router_with(store: Arc<Store>, metrics: Metrics, options: &Options) -> Router {
    let mut routes = Router::new()
        .route("/openapi.json", any(openapi))
        .route("/catalogs", any(catalogs))
        .route("/catalogs/{catalog}", any(catalog))
        .route("/catalogs/{catalog}/api/v1/all", any(all))
        .route("/catalogs/{catalog}/api/v1/metas", any(metas));
    if options.graphql {
        routes = routes.route("/catalogs/{catalog}/api/v1/graphql", any(graphql));
    }
    let routes = routes
        .fallback(async || reply::route_not_found())
        .with_state(Arc::new(Api {
            store,
            shared: SharedState::default(),
            graphql_service: options.graphql.then(GraphQl::default),
        }));
    // Below path cleaning, so that the reviewed path is the routed one.
    let routes = match &options.access {
        Some(access) => routes.layer(middleware::from_fn_with_state(access.clone(), access::check)),
        None => routes,
    };
    // Path cleaning precedes routing, so the routes are a service of the outer router.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(path::clean_paths))
        .layer(middleware::from_fn(vary))
        .layer(middleware::from_fn_with_state(metrics, metrics::observe))
}

/// Makes caches keep the encodings of a response apart.
async fn vary(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

async fn openapi(State(api): State<Arc<Api>>, method: Method, headers: HeaderMap) -> Response {
    match require_read_method(&method) {
        Ok(()) => openapi::respond(&api.shared, &method, &headers),
        Err(refusal) => *refusal,
    }
}

async fn catalogs(State(api): State<Arc<Api>>, method: Method, headers: HeaderMap) -> Response {
    match require_read_method(&method) {
        Ok(()) => listing::all(
            &api.shared,
            &api.store,
            api.graphql_service.is_some(),
            &method,
            &headers,
        ),
        Err(refusal) => *refusal,
    }
}

async fn catalog(
    State(api): State<Arc<Api>>,
    Path(catalog): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let found = require_read_method(&method)
        .and_then(|()| parse_name(catalog))
        .and_then(|name| Ok((api.served(&name)?, name)));
    match found {
        Ok((generation, name)) => {
            let image = reply::image_digest(&generation);
            let response = listing::one(
                &api.shared,
                &name,
                generation,
                api.graphql_service.is_some(),
                &method,
                &headers,
            );
            with_headers(response.await, image)
        }
        Err(refusal) => *refusal,
    }
}

async fn all(
    State(api): State<Arc<Api>>,
    Path(catalog): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    match require_read_method(&method)
        .and_then(|()| parse_name(catalog))
        .and_then(|name| api.served(&name))
    {
        Ok(generation) => {
            let image = reply::image_digest(&generation);
            with_headers(content::all(&api.shared, generation, &method, &headers), image)
        }
        Err(refusal) => *refusal,
    }
}

async fn metas(
    State(api): State<Arc<Api>>,
    Path(catalog): Path<String>,
    RawQuery(text): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let found = require_read_method(&method)
        .and_then(|()| parse_name(catalog))
        .and_then(|name| {
            let query = query::parse(text.as_deref()).map_err(|fault| {
                Box::new(match fault {
                    QueryError::Malformed => reply::bad_request(),
                    QueryError::Path(sentence) => reply::text(StatusCode::BAD_REQUEST, &sentence),
                })
            })?;
            Ok((api.served(&name)?, query))
        });
    match found {
        Ok((generation, query)) => {
            let image = reply::image_digest(&generation);
            let response = content::metas(&api.shared, generation, &method, &headers, query);
            with_headers(response.await, image)
        }
        Err(refusal) => *refusal,
    }
}

async fn graphql(
    State(api): State<Arc<Api>>,
    Path(catalog): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(graphql_service) = &api.graphql_service else {
        return reply::route_not_found();
    };
    if method != Method::POST {
        return reply::method_not_allowed("POST");
    }
    let asked = async {
        let name = parse_name(catalog)?;
        let query = graphql_service.read(body).await?;
        Ok::<_, reply::Rejection>((api.served(&name)?, query))
    };
    match asked.await {
        Ok((generation, query)) => {
            let image = reply::image_digest(&generation);
            let response = graphql_service.respond(&api.shared, generation, &headers, query);
            with_headers(response.await, image)
        }
        Err(refusal) => *refusal,
    }
}

/// Adds headers to a response.
fn with_headers(mut response: Response, headers: HeaderMap) -> Response {
    response.headers_mut().extend(headers);
    response
}

fn require_read_method(method: &Method) -> Result<(), reply::Rejection> {
    if matches!(*method, Method::GET | Method::HEAD) {
        Ok(())
    } else {
        Err(Box::new(reply::method_not_allowed(READ_METHODS)))
    }
}

fn parse_name(catalog: String) -> Result<ValidCatalogName, reply::Rejection> {
    ValidCatalogName::new(catalog).map_err(|error| {
        Box::new(reply::text(
            StatusCode::BAD_REQUEST,
            &format!("invalid catalog name: {error}"),
        ))
    })
}

impl Api {
    fn served(&self, name: &ValidCatalogName) -> Result<Arc<Generation>, reply::Rejection> {
        self.store
            .get(name)
            .ok_or_else(|| Box::new(reply::catalog_not_found()))
    }
}
