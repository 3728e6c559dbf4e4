//! Connections to the API server.

use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Builder, Client as HttpClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _, DynBody, retry::RetryPolicy},
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _, retry::RetryLayer, util::BoxService};

/// Time after which an unused connection ends.
const IDLE: Duration = Duration::from_secs(10);
/// Bytes that a connection reads at once: a whole TLS record.
const READ_BUFFER: usize = 16 * 1024;

/// A service that sends requests to the API server.
type ApiService = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// Returns a client for a configuration, with its time limits and no others. Sends nothing.
///
/// Its connections send each packet at once (`TCP_NODELAY`). Those of kube's own client wait until what they sent before is acknowledged,
/// which the other side may put off by 40 ms (<https://github.com/kube-rs/kube/issues/2056>): at the first request of each
/// connection, and in each request that is larger than a packet.
///
/// # Errors
/// The configuration is unusable.
pub fn connect(config: Config) -> kube::Result<Client> {
    Ok(builder(config)?.build())
}

/// Returns the builder of a client like [`connect`].
///
/// The layers are those of kube, without its log of requests. Connections through a proxy are kube's own, and so are those of users
/// whose credentials a program supplies, because kube alone knows when these expire.
///
/// # Errors
/// The configuration is unusable.
pub(super) fn builder(config: Config) -> kube::Result<ClientBuilder<ApiService>> {
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return ClientBuilder::try_from(config);
    }
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp())?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let retry = config
        .default_retry
        .then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(pool().build(connector))
        .map_response(|answer: Response<Incoming>| answer.map(dynamic));
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace))
}

/// Returns the settings of the pool of connections, which bound the memory of a client at rest.
///
/// By default, a connection that nobody uses stays until the API server closes it, and grows its buffer to 400 KiB when many events
/// arrive at once.
fn pool() -> Builder {
    let mut pool = HttpClient::builder(TokioExecutor::new());
    pool.pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http1_read_buf_exact_size(READ_BUFFER);
    pool
}

/// Returns what opens connections, with TLS or without.
fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}

fn dynamic(body: Incoming) -> Box<DynBody> {
    Box::new(body.map_err(BoxError::from))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn packets_wait_for_no_acknowledgement() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("https://{}", listener.local_addr().unwrap());
        let connection = tcp().oneshot(uri.parse().unwrap()).await.unwrap();
        assert!(connection.inner().nodelay().unwrap());
    }
}
