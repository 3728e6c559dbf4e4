//! Limit for the time until the API server begins its answer.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use tower::{BoxError, Layer, Service};

/// Limit for the start of a watch. The API server answers it at once; the events follow later.
const WATCH: Duration = Duration::from_secs(30);
/// Limit for any other request. The API server itself ends it after 60 s (its `--request-timeout`).
const OTHER: Duration = Duration::from_secs(70);

/// Error of a request whose answer does not begin in time. The API server may still handle the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server did not answer within {} seconds", .0.as_secs())]
pub struct NoAnswer(Duration);

/// Tower layer that ends a request of a Kubernetes client with [`NoAnswer`] if no answer begins within 30 s (start of a watch) or 70 s.
///
/// The read timeout of a connection cannot do this: it is longer than the longest silence of a watch, so a lost start of a watch
/// would leave the watcher blind for minutes. Retries of the client, such as those after 429, are part of the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerLimit;

impl<S> Layer<S> for AnswerLimit {
    type Service = LimitedService<S>;

    fn layer(&self, inner: S) -> LimitedService<S> {
        LimitedService { inner }
    }
}

/// A service whose answers begin in time.
#[derive(Clone, Debug)]
pub struct LimitedService<S> {
    inner: S,
}

impl<S, A, B> Service<Request<A>> for LimitedService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let limit = limit(request.uri().query());
        let answer = self.inner.call(request);
        Box::pin(async move {
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(NoAnswer(limit).into()),
            }
        })
    }
}

fn limit(query: Option<&str>) -> Duration {
    let mut parameters = query.unwrap_or_default().split('&');
    if parameters.any(|parameter| parameter == "watch=true") {
        WATCH
    } else {
        OTHER
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::Instant;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    async fn ask(query: &str, delay: Duration) -> (Result<u16, String>, Duration) {
        let service = AnswerLimit.layer(service_fn(move |_: Request<()>| async move {
            tokio::time::sleep(delay).await;
            Ok::<_, Infallible>(Response::new(()))
        }));
        let request = Request::builder()
            .uri(format!("/api/v1/pods{query}"))
            .body(())
            .unwrap();
        let start = Instant::now();
        let answer = service.oneshot(request).await;
        let answer = answer
            .map(|answer| answer.status().as_u16())
            .map_err(|error| error.to_string());
        (answer, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_does_not_start_and_a_call_without_answer_end() {
        let never = Duration::from_secs(1000);
        for (query, seconds) in [
            ("?watch=true&timeoutSeconds=290", 30),
            ("?limit=500", 70),
            ("", 70),
        ] {
            let (answer, took) = ask(query, never).await;
            assert_eq!(
                answer,
                Err(format!("the API server did not answer within {seconds} seconds"))
            );
            assert_eq!(took.as_secs(), seconds, "{query}");
        }
        assert_eq!(ask("?watch=true", Duration::from_secs(29)).await.0, Ok(200));
        assert_eq!(
            ask("?labelSelector=watch", Duration::from_mins(1)).await.0,
            Ok(200)
        );
    }
}
