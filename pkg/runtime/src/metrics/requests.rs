//! Requests to the API server, under client-go's name.

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

use super::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// The status, or `<error>` when there was no answer.
    code: String,
    method: String,
    /// One: that of the cluster.
    host: String,
}

/// Counts the requests of a client.
#[derive(Clone, Debug)]
pub struct Requests {
    total: Family<Labels, Counter>,
    host: String,
}

impl Requests {
    /// Registers the counter of a client of the API server at `host`.
    #[must_use]
    pub fn register(registry: &Registry, host: String) -> Self {
        let total = Family::default();
        registry.register(|inner| {
            inner.register(
                "rest_client_requests",
                "Number of HTTP requests, partitioned by status code, method, and host",
                total.clone(),
            );
        });
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

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            requests: self.clone(),
        }
    }
}

/// A service whose answers are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
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
        let (answer, requests) = (self.inner.call(request), self.requests.clone());
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            requests.count(method, code);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test]
    async fn answers_are_counted() {
        let registry = Registry::new();
        let layer = Requests::register(&registry, "cluster:6443".to_owned());
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
