//! `GET /catalogs` and `/catalogs/{name}`: descriptions of the served catalogs without their content.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    http::{HeaderMap, Method},
    response::Response,
};
use serde::Serialize;

use super::{
    conditional::{self, Validators},
    content::SharedState,
    document, reply,
};
use crate::storage::{Counts, Encoding, Generation, StorageError, Store, ValidCatalogName};

/// Maximum number of schemas that are listed.
const SCHEMAS: usize = 256;

#[derive(Serialize)]
struct Catalogs {
    catalogs: Vec<Catalog>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Catalog {
    name: String,
    /// SHA-256 of the whole content.
    digest: String,
    /// Time since which this content exists.
    last_modified: String,
    /// Time at which the image was unpacked.
    unpacked: String,
    sizes: Sizes,
    counts: Counts,
    #[serde(skip_serializing_if = "Option::is_none")]
    schemas: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schemas_left_out: Option<u64>,
    links: Links,
}

/// Size of the whole content in each encoding, in bytes.
#[derive(Serialize)]
struct Sizes {
    identity: u64,
    gzip: u64,
    zstd: u64,
}

#[derive(Serialize)]
struct Links {
    #[serde(rename = "self")]
    itself: String,
    all: String,
    metas: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    graphql: Option<String>,
}

/// Responds to `/catalogs`.
pub(super) fn all(
    shared: &SharedState,
    store: &Store,
    graphql: bool,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let catalogs = store
        .serving()
        .into_iter()
        .map(|(name, generation)| Catalog::new(&name, &generation, graphql))
        .collect();
    let text = document::json(&Catalogs { catalogs });
    let tag = document::digest(&text);
    let validators = |encoding| Validators {
        etag: reply::etag(&tag, encoding),
        content: None,
        modified: None,
    };
    document::respond(shared, method, headers, validators, &text)
}

/// Responds to `/catalogs/{name}`.
pub(super) async fn one(
    shared: &SharedState,
    name: &ValidCatalogName,
    generation: Arc<Generation>,
    graphql: bool,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    let mut catalog = Catalog::new(name, &generation, graphql);
    let manifest = generation.manifest();
    let (content, modified) = (manifest.digest.clone(), manifest.stored_at);
    let counted = shared.jobs.run(move |_| generation.schemas(SCHEMAS)).await;
    match counted {
        Ok(Ok(found)) => {
            catalog.schemas = Some(found.counts.into_iter().collect());
            catalog.schemas_left_out = Some(found.left_out).filter(|left_out| *left_out > 0);
        }
        Ok(Err(error)) => return internal_error(&error),
        Err(error) => return reply::internal_error("counting schemas", &error),
    }
    let text = document::json(&catalog);
    let tag = document::digest(&text);
    let validators = |encoding| Validators {
        etag: reply::etag(&tag, encoding),
        content: Some(content.clone()),
        modified: Some(conditional::time(modified)),
    };
    document::respond(shared, method, headers, validators, &text)
}

fn internal_error(error: &StorageError) -> Response {
    reply::internal_error("counting schemas", error)
}

impl Catalog {
    fn new(name: &ValidCatalogName, generation: &Generation, graphql: bool) -> Self {
        let manifest = generation.manifest();
        let itself = format!("/catalogs/{name}");
        Self {
            name: name.to_string(),
            digest: format!("sha256:{}", manifest.digest),
            last_modified: timestamp(manifest.stored_at),
            unpacked: timestamp(manifest.origin.unpacked_at),
            sizes: Sizes {
                identity: generation.size(Encoding::Identity),
                gzip: generation.size(Encoding::Gzip),
                zstd: generation.size(Encoding::Zstd),
            },
            counts: manifest.counts,
            schemas: None,
            schemas_left_out: None,
            links: Links {
                all: format!("{itself}/api/v1/all"),
                metas: format!("{itself}/api/v1/metas"),
                graphql: graphql.then(|| format!("{itself}/api/v1/graphql")),
                itself,
            },
        }
    }
}

fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .unwrap_or_default()
        .to_string()
}
