//! Errors of reading a catalog, and of requests to the cluster.

use std::path::PathBuf;

use olm_applier::stored::SurveyError;
use olm_bundle_files::FilesError;
use olm_catalog_client::ClientError;
use olm_catalog_files::WalkError;
use olm_fbc::{ContentError, DecodeError};
use olm_runtime::client::ProxyError;
use olm_text::name::CatalogName;

/// Reason why a catalog cannot be read, or the cluster does not answer or refuses a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{} is not a directory: give a file-based catalog's directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("there is no catalog {name:?}; available: {}", present.join(", "))]
    NoSuchCatalog {
        name: CatalogName,
        present: Vec<CatalogName>,
    },
    #[error("catalog {catalog:?} is not being served")]
    NotServing { catalog: CatalogName },
    #[error("catalog {catalog:?} cannot be read: {reason}")]
    Unread { catalog: CatalogName, reason: String },
    #[error("cannot walk the catalog in {}", path.display())]
    Walk {
        path: PathBuf,
        #[source]
        source: Box<WalkError>,
    },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{place} is not a catalog")]
    Decode {
        place: String,
        #[source]
        source: Box<DecodeError>,
    },
    #[error("{place} is not a valid catalog")]
    Content {
        place: String,
        #[source]
        source: Box<ContentError>,
    },
    #[error("{} is not a directory: give a bundle's directory or image", path.display())]
    NotABundle { path: PathBuf },
    #[error("the bundle in {} cannot be read", path.display())]
    Bundle {
        path: PathBuf,
        #[source]
        source: FilesError,
    },
    #[error("{reference:?} is not an image reference: write HOST/REPOSITORY:TAG or @DIGEST")]
    Reference {
        reference: String,
        #[source]
        source: Box<olm_image::ReferenceError>,
    },
    #[error("image {reference} cannot be pulled")]
    Image {
        reference: String,
        #[source]
        source: Box<olm_image::Error>,
    },
    #[error("{url:?} is not the base URL of a catalog: write https://HOST/catalogs/NAME")]
    Url { url: String },
    #[error("the certificate authorities cannot be used: {cause}")]
    Trust { cause: String },
    #[error("catalogd cannot be reached at {url}: {cause}")]
    Http { url: String, cause: String },
    #[error("catalogd does not serve {endpoint} of catalog {catalog:?}")]
    NotServed { catalog: CatalogName, endpoint: String },
    #[error(
        "catalogd asks for a token to read catalog {catalog:?} (--catalogs-server-require-token), which this command cannot send: read the \
         image of the catalog with --image, or use the web pages in the cluster"
    )]
    TokenRequired { catalog: CatalogName },
    #[error("catalog {catalog:?}: the response is larger than {limit} bytes")]
    TooLong { catalog: CatalogName, limit: u64 },
    #[error("catalog {catalog:?} is unreachable by the API server's proxy ({proxy}) and by its own address")]
    Unreachable {
        catalog: CatalogName,
        proxy: String,
        #[source]
        source: Box<SourceError>,
    },
    #[error("the catalog cannot be read")]
    Client {
        #[source]
        source: Box<ClientError>,
    },
    #[error(
        "no cluster is configured: set --kubeconfig{}",
        if *offline { ", or work offline with --dir, --image or --catalogd" } else { "" }
    )]
    Kubeconfig {
        /// True if the command has flags to work without a cluster.
        offline: bool,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    Proxy(ProxyError),
    #[error("request to the cluster failed: {what}")]
    Cluster {
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(
        "you may not list ClusterExtensions; kubectl olm get --namespace NAMESPACE shows what they offer in one namespace"
    )]
    NotListed {
        #[source]
        source: Box<SourceError>,
    },
    #[error("request to the cluster timed out: {what}")]
    Slow { what: String },
    #[error("another process has been pulling into {} for too long; end it, or set XDG_CACHE_HOME", path.display())]
    Busy { path: PathBuf },
    #[error("reading {place} was interrupted")]
    Interrupted { place: String },
    /// A write failed after others.
    #[error("{written}")]
    Partial {
        /// Sentence about the writes before.
        written: String,
        #[source]
        source: Box<SourceError>,
    },
    #[error(transparent)]
    Stored(#[from] SurveyError),
}

impl SourceError {
    /// Returns the HTTP status with which the API server refused, if it did: 401 or 403.
    pub(crate) fn refusal(&self) -> Option<u16> {
        match self {
            Self::Cluster { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code).filter(|code| matches!(code, 401 | 403)),
                _ => None,
            },
            Self::NotListed { source } | Self::Partial { source, .. } => source.refusal(),
            _ => None,
        }
    }

    /// Returns true if catalogd refused to serve a catalog to this reader.
    pub(crate) fn is_denied(&self) -> bool {
        match self {
            Self::TokenRequired { .. } => true,
            Self::Client { source } => matches!(source.as_ref(), ClientError::Denied { .. }),
            Self::Unreachable { source, .. } => source.is_denied(),
            _ => false,
        }
    }

    /// Returns the API server's error if it refused a write with a conflict: another manager owns a field of a server-side apply, or
    /// the object changed in the meantime.
    pub(crate) fn conflict(&self) -> Option<&kube::Error> {
        match self {
            Self::Cluster { source, .. } => Some(source.as_ref())
                .filter(|error| matches!(error, kube::Error::Api(status) if status.code == 409)),
            _ => None,
        }
    }

    /// Returns the error of a command that can work without a cluster.
    pub(super) fn or_offline(self) -> Self {
        match self {
            Self::Kubeconfig { source, .. } => Self::Kubeconfig {
                offline: true,
                source,
            },
            error => error,
        }
    }
}
