//! TLS trust and client certificates of registries.
//!
//! The directory of `--pull-cas-dir` applies to all registries, as in upstream: its `*.crt` files are authorities, and
//! a `NAME.cert` with its `NAME.key` is the client certificate. The same files in `certs.d/HOST[:PORT]/` apply to one
//! registry; the first of several such directories wins. `HOST` is the registry as in references, as for podman:
//! `certs.d/docker.io/` is Docker Hub's, although `registry-1.docker.io` serves its API. Other hosts, such as the target
//! of a redirect, never receive the client certificate of the directory for all.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use olm_runtime::tls::{self, TlsError};
use rustls::ClientConfig;
use rustls_pki_types::CertificateDer;

/// Maximum size of a certificate file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Trust settings for all hosts of a pull.
pub(crate) struct Trust {
    base: ClientConfig,
    authorities: Vec<CertificateDer<'static>>,
    identity: Option<Identity>,
    certs_d: Vec<PathBuf>,
}

/// Client certificate and its key, PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    /// Returns certificate and key in one text.
    pub(crate) fn pem(&self) -> Vec<u8> {
        [&self.certificate, b"\n".as_slice(), &self.key].concat()
    }
}

impl Trust {
    /// Reads the directory for all registries. Blocks on the disk.
    pub(crate) fn read(global: Option<&Path>, certs_d: &[PathBuf]) -> Result<Self, TlsError> {
        tls::install_provider();
        let authorities = global.map(tls::authorities_in).transpose()?.unwrap_or_default();
        Ok(Self {
            base: tls::client_config(&authorities)?,
            authorities,
            identity: global.map(identity).transpose()?.flatten(),
            certs_d: certs_d.to_owned(),
        })
    }

    /// Returns the TLS configuration and client certificate for a host by the first of its names that has a directory;
    /// `is_registry` if the host is the registry itself. Blocks on the disk.
    pub(crate) fn for_host(
        &self,
        names: &[String],
        is_registry: bool,
    ) -> Result<(ClientConfig, Option<Identity>), TlsError> {
        let mut client_identity = self.identity.clone().filter(|_| is_registry);
        let mut config = self.base.clone();
        if let Some(directory) = names.iter().find_map(|name| self.directory(name)) {
            if has_files(&directory, &["crt", "pem"])? {
                let mut all = self.authorities.clone();
                all.extend(tls::authorities_in(&directory)?);
                config = tls::client_config(&all)?;
            }
            client_identity = identity(&directory)?.or(client_identity);
        }
        if let Some(Identity { certificate, key }) = &client_identity {
            config = tls::with_identity(config, certificate, key)?;
        }
        Ok((config, client_identity))
    }

    fn directory(&self, host: &str) -> Option<PathBuf> {
        // The name of a redirect's target is untrusted: it must be one path component, and not dots.
        let plain = !host.is_empty() && !host.starts_with('.') && !host.contains(['/', '\0']);
        let mut candidates = self.certs_d.iter().map(|directory| directory.join(host));
        candidates.find(|directory| plain && directory.is_dir())
    }
}

/// Returns the directories of per-registry certificates of container tools.
pub(crate) fn default_certs_d() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").filter(|value| !value.is_empty());
    let of_user = home.map(|home| Path::new(&home).join(".config/containers/certs.d"));
    let system = ["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from);
    of_user.into_iter().chain(system).collect()
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, TlsError> {
    let failed = |source| TlsError::Read {
        path: directory.to_owned(),
        source,
    };
    let entries = fs::read_dir(directory).map_err(failed)?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn has_files(directory: &Path, extensions: &[&str]) -> Result<bool, TlsError> {
    let fits = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    };
    Ok(files(directory)?.iter().any(fits))
}

/// Returns the first certificate of a directory with its key.
fn identity(directory: &Path) -> Result<Option<Identity>, TlsError> {
    let is_certificate = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "cert");
    let Some(path) = files(directory)?.into_iter().find(is_certificate) else {
        return Ok(None);
    };
    Ok(Some(Identity {
        key: read(&path.with_extension("key"))?,
        certificate: read(&path)?,
    }))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes))
        .map_err(|source| TlsError::Read {
            path: path.to_owned(),
            source,
        })?;
    Ok(bytes)
}
