//! The catalog content service: ClusterCatalog controller, storage, HTTP server.
