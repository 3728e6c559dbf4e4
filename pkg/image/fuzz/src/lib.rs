//! The parsers of olm-image, compiled by themselves: a build with sanitizers takes minutes instead of an hour without
//! HTTP, TLS and the cluster's client. This crate replaces their types with stubs that the targets never reach.
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]

#[path = "../../src/auth/mod.rs"]
mod auth;
#[path = "../../src/config.rs"]
mod config;
mod entry;
#[path = "../../src/limits.rs"]
mod limits;
#[path = "../../src/policy/mod.rs"]
mod policy;
#[path = "../../src/reference.rs"]
mod reference;
#[path = "../../src/registries.rs"]
mod registries;
mod registry;
#[path = "../../src/unpack/mod.rs"]
mod unpack;

pub use entry::{challenge, docker_config, manifest, policy, reference, registries, unpack};
pub(crate) use reference::Algorithm;

mod files {
    use std::{io, path::Path};

    pub(crate) async fn read_capped(_path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

mod hosts {
    #[derive(Clone, Debug, Default)]
    pub struct HostPolicy;

    pub(crate) fn without_port(host: &str) -> &str {
        host.split(':').next().unwrap_or(host)
    }
}

mod trust {
    pub(crate) fn default_certs_d() -> Vec<std::path::PathBuf> {
        Vec::new()
    }
}
