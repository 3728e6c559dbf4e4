//! Access to a cluster by the token of somebody else: a reader of the web pages.
//!
//! Every request to the API server carries the reader's token, so the API server decides what the reader sees. The content of catalogs
//! comes from catalogd, which by default asks nobody for a token; a `SubjectAccessReview` decides first, by the same rule as
//! catalogd with `--catalogs-server-require-token`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Config;
use kube::config::AuthInfo;
use olm_catalog_client::CatalogRef;
use olm_runtime::client::connect;
use olm_runtime::metrics::access::{Access, AccessError};
use olm_text::name::CatalogName;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use url::Url;

use super::catalog::Location;
use super::cluster::{Cluster, Content};
use super::error::SourceError;
use super::proxy::Proxy;
use super::served::{Authorities, Direct, ServedCatalog};

/// Time for which a decision about a catalog's content is kept.
const DECISION_TTL: Duration = Duration::from_secs(10);
/// Maximum number of kept decisions.
const DECISIONS: usize = 256;
/// Read timeout of a connection to the API server; longer than the longest watch (295 s).
const READ_TIMEOUT: Duration = Duration::from_secs(330);

/// catalogd as the server of the pages reaches it.
#[derive(Clone, Debug)]
pub(crate) struct CatalogdAddress {
    /// Host, or HOST:PORT. Content is read from no other host, whatever a `ClusterCatalog` says.
    pub(crate) host: String,
    /// PEM file with authorities that are trusted besides the system's; read for each connection, and may be absent.
    pub(crate) ca_file: Option<PathBuf>,
    /// Directory with such files; may be absent.
    pub(crate) cas_dir: Option<PathBuf>,
}

/// A reader who is known by a token.
pub(crate) struct Bearer {
    token: String,
    user: UserInfo,
    access: Access,
    catalogd: CatalogdAddress,
    decisions: Mutex<BTreeMap<CatalogName, (Instant, bool)>>,
}

impl std::fmt::Debug for Bearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.user.username.as_deref().unwrap_or_default();
        f.debug_struct("Bearer")
            .field("user", &user)
            .finish_non_exhaustive()
    }
}

impl Bearer {
    /// Creates a reader whose token has been reviewed: `user` is its user.
    pub(crate) fn new(token: String, user: UserInfo, access: Access, catalogd: CatalogdAddress) -> Self {
        Self {
            token,
            user,
            access,
            catalogd,
            decisions: Mutex::default(),
        }
    }

    /// Returns the token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns the user of the first review.
    pub(crate) fn user(&self) -> &UserInfo {
        &self.user
    }

    /// Returns true if the reader may read the content of a catalog.
    ///
    /// # Errors
    /// The API server does not answer.
    pub(crate) async fn may_read(&self, catalog: &CatalogName) -> Result<bool, AccessError> {
        let known = self.decisions.lock().get(catalog).copied();
        if let Some((since, allowed)) = known
            && since.elapsed() < DECISION_TTL
        {
            return Ok(allowed);
        }
        let allowed = self.access.may(&self.user, "get", &path(catalog)).await?;
        let mut decisions = self.decisions.lock();
        if decisions.len() >= DECISIONS {
            decisions.clear();
        }
        decisions.insert(catalog.clone(), (Instant::now(), allowed));
        Ok(allowed)
    }

    /// Returns the way to catalogd, without a connection yet.
    pub(super) fn direct(&self) -> Arc<Direct> {
        Direct::new(Authorities::Files {
            file: self.catalogd.ca_file.clone(),
            directory: self.catalogd.cas_dir.clone(),
        })
    }

    /// Returns the location of a catalog's content, closed with the reason if the reader must not read it.
    pub(super) async fn location(self: &Arc<Self>, reference: CatalogRef, direct: Arc<Direct>) -> Location {
        if !is_at(&reference.base_url, &self.catalogd.host) {
            return Location::Closed(format!(
                "its content is at {:?}, and these pages read only from https://{}",
                reference.base_url, self.catalogd.host
            ));
        }
        match self.may_read(&reference.name).await {
            Ok(true) => {}
            Ok(false) => {
                return Location::Closed(format!(
                    "you may not read its content: the right to get {} is missing, which ClusterRole catalogd-content-reader has",
                    path(&reference.name)
                ));
            }
            Err(error) => return Location::Closed(olm_text::chain(&error)),
        }
        Location::Served(Box::new(ServedCatalog::of_bearer(
            reference,
            direct,
            self.clone(),
        )))
    }
}

impl Cluster {
    /// Returns the cluster as a reader may see it. Of `config`, only the address of the API server and how to trust it are used.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(crate) fn of_bearer(
        config: &Config,
        bearer: Arc<Bearer>,
        system_namespace: &str,
    ) -> Result<Self, SourceError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| SourceError::Kubeconfig {
            offline: false,
            source: error,
        };
        let mut config = config.clone();
        // Nothing of the server's own identity is left: neither its token nor a client certificate.
        config.auth_info = auth_info(&bearer.token).map_err(|error| failed(error.into()))?;
        config.read_timeout = Some(READ_TIMEOUT);
        let client = connect(config.clone()).map_err(|error| failed(error.into()))?;
        let proxy = Proxy::new(client.clone(), config, system_namespace.to_owned());
        Ok(Self::new(
            client,
            proxy.map_err(|error| failed(error.into()))?,
            system_namespace.to_owned(),
            Content::OfBearer(bearer),
        ))
    }
}

fn auth_info(token: &str) -> serde_json::Result<AuthInfo> {
    serde_json::from_value(json!({"token": token}))
}

/// Path whose non-resource right is that to read a catalog's content, as catalogd itself asks for it.
fn path(catalog: &CatalogName) -> String {
    format!("/catalogs/{catalog}/api/v1/all")
}

/// Returns true if `url` leads to `host` by HTTPS.
fn is_at(url: &str, host: &str) -> bool {
    let authority = |url: &Url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?));
    let expected = Url::parse(&format!("https://{host}")).ok();
    let url = Url::parse(url)
        .ok()
        .filter(|url| url.scheme() == "https" && url.username().is_empty() && url.password().is_none());
    match (url, expected) {
        (Some(url), Some(expected)) => authority(&url).is_some() && authority(&url) == authority(&expected),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_from_one_host() {
        let host = "catalogd-service.olmv1-system.svc";
        for (url, at) in [
            ("https://catalogd-service.olmv1-system.svc/catalogs/a", true),
            ("https://catalogd-service.olmv1-system.svc:443/catalogs/a", true),
            ("https://catalogd-service.olmv1-system.svc:8443/catalogs/a", false),
            ("http://catalogd-service.olmv1-system.svc/catalogs/a", false),
            (
                "https://catalogd-service.olmv1-system.svc.evil.example/catalogs/a",
                false,
            ),
            (
                "https://catalogd-service.olmv1-system.svc@evil.example/catalogs/a",
                false,
            ),
            ("https://evil@catalogd-service.olmv1-system.svc/catalogs/a", false),
            ("catalogd-service.olmv1-system.svc", false),
            ("", false),
        ] {
            assert_eq!(is_at(url, host), at, "{url}");
        }
        assert!(is_at("https://127.0.0.1:9443/catalogs/a", "127.0.0.1:9443"));
    }

    #[test]
    fn nothing_but_the_token_identifies_the_reader() {
        let info = auth_info("a.b.c").unwrap();
        let shown = serde_json::to_value(&info).unwrap();
        let fields: Vec<&String> = shown.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["token"]);
    }
}
