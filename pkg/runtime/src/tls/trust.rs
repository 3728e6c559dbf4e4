//! Trust of clients: the system's certificate authorities and given ones.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustls::{
    ClientConfig, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    sign::SingleCertAndKey,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{Profile, TlsError, resolver, roots::roots};

/// Maximum size of a file of certificates in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Parses all certificates of a PEM text.
///
/// # Errors
/// The text is malformed, or contains none.
pub fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = resolver::certificates(pem)?;
    if found.is_empty() {
        Err(TlsError::NoCertificate)
    } else {
        Ok(found)
    }
}

/// Returns true if a client that trusts the authorities `ca` accepts the chain `certificate` for all `names` at the time `at`. Both are PEM
/// texts.
#[must_use]
pub fn is_trusted(ca: &[u8], certificate: &[u8], names: &[String], at: SystemTime) -> bool {
    let Ok(since_epoch) = at.duration_since(SystemTime::UNIX_EPOCH) else {
        return false;
    };
    let (Ok(authorities), Ok(chain)) = (resolver::certificates(ca), resolver::certificates(certificate))
    else {
        return false;
    };
    let Some((leaf, intermediates)) = chain.split_first() else {
        return false;
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    names.iter().all(|name| {
        ServerName::try_from(name.as_str()).is_ok_and(|name| {
            let at = UnixTime::since_unix_epoch(since_epoch);
            verifier
                .verify_server_cert(leaf, intermediates, &name, &[], at)
                .is_ok()
        })
    })
}

/// Lists the `*.crt` and `*.pem` files of a directory in the order of their names. Blocking.
///
/// # Errors
/// The directory is unreadable.
pub fn certificate_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "crt" || end == "pem"));
    paths.sort();
    Ok(paths)
}

/// Reads the certificates of all `*.crt` and `*.pem` files of a directory. Blocking.
///
/// # Errors
/// The directory or a file is unreadable, or there is no certificate.
pub fn authorities_in(directory: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Read { path, source }
    };
    let mut found = Vec::new();
    for path in certificate_files(directory).map_err(failed(directory))? {
        let mut pem = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_FILE).read_to_end(&mut pem))
            .map_err(failed(&path))?;
        found.extend(resolver::certificates(&pem)?);
    }
    if found.is_empty() {
        return Err(TlsError::NoAuthorities {
            directory: directory.to_owned(),
        });
    }
    Ok(found)
}

/// Returns a client's TLS configuration that trusts the system's authorities and `extra`. Blocking: looks at the system's files.
///
/// Configurations share the parsed authorities while the system's files stay as they are. Unreadable system certificates are
/// skipped: an image may have none.
///
/// # Errors
/// One of `extra` is no certificate, or the provider lacks a protocol version.
pub fn client_config(extra: &[CertificateDer<'static>]) -> Result<ClientConfig, TlsError> {
    client_config_with(extra, &Profile::default())
}

/// Returns a configuration like [`client_config`] with another profile than intermediate.
///
/// # Errors
/// As [`client_config`].
pub fn client_config_with(
    extra: &[CertificateDer<'static>],
    profile: &Profile,
) -> Result<ClientConfig, TlsError> {
    Ok(profile
        .client()?
        .with_root_certificates(roots(extra)?)
        .with_no_client_auth())
}

/// Adds a client certificate for servers that request one.
///
/// # Errors
/// The PEM texts are no certificate chain with its key.
pub fn with_identity(
    mut config: ClientConfig,
    certificate_pem: &[u8],
    key_pem: &[u8],
) -> Result<ClientConfig, TlsError> {
    let key = resolver::certified_key(certificate_pem, key_pem)?;
    config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
    Ok(config)
}
