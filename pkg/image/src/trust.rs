//! Whom to trust for a registry, and the certificate to present to it.
//!
//! The directory of `--pull-cas-dir` counts for all registries, as upstream has it: its `*.crt`
//! files are authorities, a `NAME.cert` with its `NAME.key` is what we present. For one registry
//! alone the same files are in `certs.d/HOST[:PORT]/`, the first of several places that has such a
//! directory. What is not the registry itself, such as the target of a redirect, is never
//! presented the certificate of the directory for all.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use olm_runtime::tls::{self, TlsError};
use rustls::ClientConfig;
use rustls_pki_types::CertificateDer;

/// Larger files are no certificates.
const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// What holds for all hosts of a pull.
pub(crate) struct Trust {
    base: ClientConfig,
    authorities: Vec<CertificateDer<'static>>,
    identity: Option<Identity>,
    certs_d: Vec<PathBuf>,
}

/// A certificate to present and its key, PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    /// Both in one text.
    pub(crate) fn pem(&self) -> Vec<u8> {
        [&self.certificate, b"\n".as_slice(), &self.key].concat()
    }
}

impl Trust {
    /// Reads the directory for all registries. Reads files: not for async threads.
    pub(crate) fn read(for_all: Option<&Path>, certs_d: &[PathBuf]) -> Result<Self, TlsError> {
        tls::install_provider();
        let authorities = for_all.map(tls::authorities_in).transpose()?.unwrap_or_default();
        Ok(Self {
            base: tls::client_config(&authorities)?,
            authorities,
            identity: for_all.map(identity).transpose()?.flatten(),
            certs_d: certs_d.to_owned(),
        })
    }

    /// The TLS for one host and what to present to it; `own` when it is the registry itself.
    /// Reads files: not for async threads.
    pub(crate) fn of(&self, host: &str, own: bool) -> Result<(ClientConfig, Option<Identity>), TlsError> {
        let mut presented = self.identity.clone().filter(|_| own);
        let mut config = self.base.clone();
        if let Some(directory) = self.directory(host) {
            if has(&directory, &["crt", "pem"])? {
                let mut all = self.authorities.clone();
                all.extend(tls::authorities_in(&directory)?);
                config = tls::client_config(&all)?;
            }
            presented = identity(&directory)?.or(presented);
        }
        if let Some(Identity { certificate, key }) = &presented {
            config = tls::with_identity(config, certificate, key)?;
        }
        Ok((config, presented))
    }

    fn directory(&self, host: &str) -> Option<PathBuf> {
        // The name of a redirect's target is foreign: it must be one part of a path, and no dots.
        let plain = !host.is_empty() && !host.starts_with('.') && !host.contains(['/', '\0']);
        let mut places = self.certs_d.iter().map(|place| place.join(host));
        places.find(|place| plain && place.is_dir())
    }
}

/// Where container tools keep the certificates of single registries.
pub(crate) fn default_certs_d() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").filter(|value| !value.is_empty());
    let own = home.map(|home| Path::new(&home).join(".config/containers/certs.d"));
    let system = ["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from);
    own.into_iter().chain(system).collect()
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

fn has(directory: &Path, extensions: &[&str]) -> Result<bool, TlsError> {
    let fits = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    };
    Ok(files(directory)?.iter().any(fits))
}

/// The first certificate of a directory with its key.
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
        .and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes))
        .map_err(|source| TlsError::Read {
            path: path.to_owned(),
            source,
        })?;
    Ok(bytes)
}
