//! The catalog content service: ClusterCatalog controller, storage, HTTP server.

pub mod server;
pub mod storage;
