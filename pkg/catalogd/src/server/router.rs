//! Which path is what.

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
    content::{self, Shared},
    graphql::{self, Graph},
    listing, metrics, openapi, path,
    query::{self, Fault},
    reply,
};
use crate::storage::{CatalogName, Generation, Store};

const READ: &str = "GET, HEAD";

/// What the content API offers beyond what it always does.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether there is GraphQL.
    pub graphql: bool,
    /// Who is asked whether a client may have an answer; without it, everybody may.
    pub access: Option<Access>,
}

/// What the handlers work with.
struct Api {
    store: Arc<Store>,
    shared: Shared,
    graph: Option<Graph>,
}

/// The content API over what `store` holds, with the default options.
pub fn router(store: Arc<Store>, metrics: Metrics) -> Router {
    router_with(store, metrics, &Options::default())
}

/// The content API over what `store` holds.
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
        .fallback(async || reply::no_page())
        .with_state(Arc::new(Api {
            store,
            shared: Shared::default(),
            graph: options.graphql.then(Graph::default),
        }));
    // After paths are cleaned, so that what is reviewed is what is routed.
    let routes = match &options.access {
        Some(access) => routes.layer(middleware::from_fn_with_state(access.clone(), access::check)),
        None => routes,
    };
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

async fn openapi(State(api): State<Arc<Api>>, method: Method, headers: HeaderMap) -> Response {
    match allowed(&method) {
        Ok(()) => openapi::answer(&api.shared, &method, &headers),
        Err(refusal) => *refusal,
    }
}

async fn catalogs(State(api): State<Arc<Api>>, method: Method, headers: HeaderMap) -> Response {
    match allowed(&method) {
        Ok(()) => listing::all(&api.shared, &api.store, api.graph.is_some(), &method, &headers),
        Err(refusal) => *refusal,
    }
}

async fn catalog(
    State(api): State<Arc<Api>>,
    Path(catalog): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let found = allowed(&method)
        .and_then(|()| name(catalog))
        .and_then(|name| Ok((api.served(&name)?, name)));
    match found {
        Ok((generation, name)) => {
            let image = reply::image_digest(&generation);
            let answer = listing::one(
                &api.shared,
                &name,
                generation,
                api.graph.is_some(),
                &method,
                &headers,
            );
            with(answer.await, image)
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
    match allowed(&method)
        .and_then(|()| name(catalog))
        .and_then(|name| api.served(&name))
    {
        Ok(generation) => {
            let image = reply::image_digest(&generation);
            with(content::all(generation, &method, &headers), image)
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
    let found = allowed(&method).and_then(|()| name(catalog)).and_then(|name| {
        let query = query::read(text.as_deref()).map_err(|fault| {
            Box::new(match fault {
                Fault::Malformed => reply::bad_request(),
                Fault::Path(sentence) => reply::text(StatusCode::BAD_REQUEST, &sentence),
            })
        })?;
        Ok((api.served(&name)?, query))
    });
    match found {
        Ok((generation, query)) => {
            let image = reply::image_digest(&generation);
            let answer = content::metas(&api.shared, generation, &method, &headers, query);
            with(answer.await, image)
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
    let Some(graph) = &api.graph else {
        return reply::no_page();
    };
    if method != Method::POST {
        return reply::wrong_method("POST");
    }
    let asked = async {
        let name = name(catalog)?;
        let query = graphql::Query::read(body).await?;
        Ok::<_, reply::Refusal>((api.served(&name)?, query))
    };
    match asked.await {
        Ok((generation, query)) => {
            let image = reply::image_digest(&generation);
            let answer = graph.answer(&api.shared, generation, &headers, query);
            with(answer.await, image)
        }
        Err(refusal) => *refusal,
    }
}

/// The answer with more headers.
fn with(mut answer: Response, headers: HeaderMap) -> Response {
    answer.headers_mut().extend(headers);
    answer
}

fn allowed(method: &Method) -> Result<(), reply::Refusal> {
    if matches!(*method, Method::GET | Method::HEAD) {
        Ok(())
    } else {
        Err(Box::new(reply::wrong_method(READ)))
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

impl Api {
    fn served(&self, name: &CatalogName) -> Result<Arc<Generation>, reply::Refusal> {
        self.store.get(name).ok_or_else(|| Box::new(reply::no_catalog()))
    }
}
