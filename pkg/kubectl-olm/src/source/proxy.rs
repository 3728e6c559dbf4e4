//! The API server's proxy to catalogd's Service.

use std::fs::File;
use std::time::Duration;

use futures::AsyncReadExt as _;
use kube::{Client, Config};
use olm_runtime::client::connect;
use olm_text::dns::is_label;
use olm_text::name::CatalogName;
use url::Url;

use super::call::CALL_TIMEOUT;
use super::error::SourceError;
use super::spool::Spool;

/// Time limit of a response of catalogd.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(5);
/// Default Service of catalogd; a catalog's URL may name another.
const SERVICE: &str = "catalogd-service";

/// The API server's proxy to catalogd's Service.
pub(super) struct Proxy {
    client: Client,
    once: Client,
    namespace: String,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Creates a proxy to the Service in `namespace`. `client` and `config` are of the same cluster.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(super) fn new(client: Client, mut config: Config, namespace: String) -> kube::Result<Self> {
        // 503 says that the Service has no endpoint, or that the kubelet does not answer. Another attempt does not help.
        config.default_retry = false;
        Ok(Self {
            client,
            once: connect(config)?,
            namespace,
        })
    }

    /// Returns a client that does not repeat requests.
    pub(super) fn once(&self) -> &Client {
        &self.once
    }

    /// Returns catalogd's own certificate authorities; none if the Secret is absent or must not be read.
    pub(super) async fn own_ca(&self) -> Result<Option<String>, SourceError> {
        let asked = olm_runtime::tls::own_ca(&self.client, &self.namespace);
        match tokio::time::timeout(CALL_TIMEOUT, asked).await {
            Ok(Ok(pem)) => Ok(pem),
            // The system's authorities may suffice; otherwise TLS fails.
            Ok(Err(error)) => {
                tracing::debug!(%error, "catalogd's own authorities cannot be read");
                Ok(None)
            }
            Err(_) => Err(SourceError::Slow {
                what: "reading catalogd's own authorities".to_owned(),
            }),
        }
    }

    /// Downloads `url`, whose host is catalogd's Service inside the cluster.
    pub(super) async fn download(
        &self,
        catalog: &CatalogName,
        url: &Url,
        endpoint: &str,
        limit: u64,
    ) -> Result<File, SourceError> {
        let what = format!("reading catalog \"{catalog}\" through the API server's proxy");
        let request = http::Request::get(self.path(url)).body(Vec::new());
        let failed = |error| match error {
            kube::Error::Api(status) if is_catalogds(&status) => SourceError::NotServed {
                catalog: catalog.clone(),
                endpoint: endpoint.to_owned(),
            },
            kube::Error::Api(status) if asks_for_token(&status) => SourceError::TokenRequired {
                catalog: catalog.clone(),
            },
            error => SourceError::Cluster {
                what: what.clone(),
                source: Box::new(error),
            },
        };
        let request = request.map_err(|_| SourceError::Url { url: url.to_string() })?;
        let work = async {
            let mut stream = Box::pin(self.once.request_stream(request).await.map_err(failed)?);
            let mut spool = Spool::new(catalog, limit)?;
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = stream
                    .read(&mut buffer)
                    .await
                    .map_err(|error| SourceError::Http {
                        url: url.to_string(),
                        cause: error.to_string(),
                    })?;
                match buffer.get(..count) {
                    Some(bytes) if count > 0 => spool.write(bytes)?,
                    _ => return spool.finish(),
                }
            }
        };
        let done = tokio::time::timeout(DOWNLOAD_TIMEOUT, work).await;
        done.map_err(|_| SourceError::Slow { what: what.clone() })?
    }

    fn path(&self, url: &Url) -> String {
        // SERVICE.NAMESPACE.svc, as catalogd writes its own address.
        let mut labels = url.host_str().unwrap_or_default().split('.');
        let (service, namespace) = match (labels.next(), labels.next(), labels.next()) {
            (Some(service), Some(namespace), Some("svc")) if is_label(service) && is_label(namespace) => {
                (service, namespace)
            }
            _ => (SERVICE, self.namespace.as_str()),
        };
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!(
            "/api/v1/namespaces/{namespace}/services/{scheme}:{service}:{port}/proxy{path}{query}",
            scheme = url.scheme(),
            port = if namespace == self.namespace && service == SERVICE {
                443
            } else {
                url.port_or_known_default().unwrap_or(443)
            },
            path = url.path(),
        )
    }
}

/// Returns true if "not found" or "bad request" comes from catalogd: the API server's errors are structured.
fn is_catalogds(status: &kube::core::Status) -> bool {
    matches!(status.code, 400 | 404 | 405 | 501) && status.details.is_none() && status.reason != "NotFound"
}

/// Returns true if catalogd asks for a token, which the API server's proxy never passes on. The API server asks by a structured error.
fn asks_for_token(status: &kube::core::Status) -> bool {
    status.code == 401 && status.details.is_none() && status.reason != "Unauthorized"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str) -> Proxy {
        olm_runtime::tls::install_provider();
        let config = Config::new(server.parse().unwrap());
        let client = Client::try_from(config.clone()).unwrap();
        Proxy::new(client, config, "olmv1-system".to_owned()).unwrap()
    }

    /// Uses a server with the proxy's paths and errors, because the real proxy refuses loopback addresses.
    #[tokio::test]
    async fn answers_and_errors_of_the_proxy() {
        use axum::http::StatusCode;
        use std::io::Read as _;
        use std::sync::atomic::{AtomicUsize, Ordering};

        static WITHOUT_ENDPOINTS: AtomicUsize = AtomicUsize::new(0);

        let service = "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy";
        let not_found = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"message":"services \"x\" not found"}"#;
        let unauthorized = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}"#;
        let no_endpoints = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"ServiceUnavailable","code":503,"message":"no endpoints available for service \"https:catalogd-service:443\""}"#;
        let app = axum::Router::new()
            .route(
                &format!("{service}/catalogs/c/api/v1/metas"),
                axum::routing::get(async |uri: http::Uri| uri.query().unwrap_or_default().to_owned()),
            )
            .route(
                &format!("{service}/catalogs/c/api/v1/all"),
                axum::routing::get(async || (StatusCode::NOT_FOUND, "404 page not found")),
            )
            .route(
                &format!("{service}/stopped"),
                axum::routing::get(async move || {
                    WITHOUT_ENDPOINTS.fetch_add(1, Ordering::Relaxed);
                    (StatusCode::SERVICE_UNAVAILABLE, no_endpoints)
                }),
            )
            .route(
                &format!("{service}/private"),
                axum::routing::get(async || (StatusCode::UNAUTHORIZED, "Unauthorized")),
            )
            .route(
                &format!("{service}/expired"),
                axum::routing::get(async move || (StatusCode::UNAUTHORIZED, unauthorized)),
            )
            .fallback(async move || (StatusCode::NOT_FOUND, not_found));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = proxy(&format!("http://{}", listener.local_addr().unwrap()));
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let ask = async |path: &str, limit: u64| {
            let url = Url::parse(&format!("https://catalogd-service.olmv1-system.svc/{path}")).unwrap();
            proxy.download(&"c".into(), &url, "metas", limit).await
        };
        let mut text = String::new();
        let mut file = ask("catalogs/c/api/v1/metas?package=a%26b", 100).await.unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "package=a%26b");
        let too_long = ask("catalogs/c/api/v1/metas?package=p", 3).await;
        assert!(
            matches!(too_long, Err(SourceError::TooLong { .. })),
            "{too_long:?}"
        );
        let not_served = ask("catalogs/c/api/v1/all", 100).await;
        assert!(
            matches!(not_served, Err(SourceError::NotServed { .. })),
            "{not_served:?}"
        );
        // The Service does not exist: the proxy fails.
        let unreachable = ask("elsewhere", 100).await;
        assert!(
            matches!(unreachable, Err(SourceError::Cluster { .. })),
            "{unreachable:?}"
        );
        let private = ask("private", 100).await;
        assert!(
            matches!(private, Err(SourceError::TokenRequired { .. })),
            "{private:?}"
        );
        // The API server itself does not know the user.
        let expired = ask("expired", 100).await;
        assert_eq!(expired.map_or_else(|error| error.refusal(), |_| None), Some(401));
        // No pod of catalogd runs: the request is not repeated.
        let stopped = ask("stopped", 100).await;
        let text = stopped.map_or_else(|error| olm_text::chain(&error), |_| String::new());
        assert!(text.contains("no endpoints available"), "{text}");
        assert_eq!(WITHOUT_ENDPOINTS.load(Ordering::Relaxed), 1);
        server.abort();
    }

    #[tokio::test]
    async fn the_proxys_path() {
        let proxy = proxy("http://127.0.0.1:1");
        let path = |url: &str| proxy.path(&Url::parse(url).unwrap());
        assert_eq!(
            path("https://catalogd-service.olmv1-system.svc/catalogs/c/api/v1/metas?package=p"),
            "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/c/api/v1/metas?package=p"
        );
        assert_eq!(
            path("https://127.0.0.1:9443/catalogs/c/api/v1/all"),
            "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/c/api/v1/all"
        );
        assert_eq!(
            path("http://other.elsewhere.svc:8080/catalogs/c/api/v1/all"),
            "/api/v1/namespaces/elsewhere/services/http:other:8080/proxy/catalogs/c/api/v1/all"
        );
    }
}
