//! Requests to the API server, under client-go's metric name.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use tower::{Layer, Service};

use super::{Description, Registry};

pub(super) const TOTAL: Description = Description::counter(
    "rest_client_requests",
    &["code", "method", "host"],
    "Number of HTTP requests, partitioned by status code, method, and host",
);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// Status code, or `<error>` without an answer.
    code: String,
    method: String,
    /// Host of the cluster's API server.
    host: String,
}

/// Tower layer that counts the requests of a client.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    total: Family<Labels, Counter>,
    host: String,
}

impl RequestMetrics {
    /// Registers the counter of a client of the API server at `host`.
    #[must_use]
    pub fn register(registry: &Registry, host: String) -> Self {
        let total = Family::default();
        registry.register(|inner| TOTAL.register(inner, total.clone()));
        Self { total, host }
    }

    fn count(&self, method: String, code: Option<u16>) {
        let labels = Labels {
            code: code.map_or_else(|| "<error>".to_owned(), |code| code.to_string()),
            method,
            host: self.host.clone(),
        };
        self.total.get_or_create(&labels).inc();
    }
}

impl<S> Layer<S> for RequestMetrics {
    type Service = CountingService<S>;

    fn layer(&self, inner: S) -> CountingService<S> {
        CountingService {
            inner,
            requests: self.clone(),
        }
    }
}

/// A service whose responses are counted.
#[derive(Clone, Debug)]
pub struct CountingService<S> {
    inner: S,
    requests: RequestMetrics,
}

impl<S, A, B> Service<Request<A>> for CountingService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().to_string();
        let (response, requests) = (self.inner.call(request), self.requests.clone());
        Box::pin(async move {
            let response = response.await;
            let code = response.as_ref().ok().map(|response| response.status().as_u16());
            requests.count(method, code);
            response
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test]
    async fn responses_are_counted() {
        let registry = Registry::new();
        let layer = RequestMetrics::register(&registry, "cluster:6443".to_owned());
        let service = layer.layer(service_fn(|_: Request<()>| async {
            Ok::<_, Infallible>(Response::new(()))
        }));
        service.oneshot(Request::new(())).await.unwrap();
        layer.count("GET".to_owned(), None);
        let text = registry.encode().unwrap();
        for code in ["200", "<error>"] {
            let line = format!(
                "rest_client_requests_total{{code=\"{code}\",method=\"GET\",host=\"cluster:6443\"}} 1"
            );
            assert!(text.contains(&line), "{text}");
        }
    }
}
