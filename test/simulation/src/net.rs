//! The network of a run: every call of a controller waits here until the scheduler answers it.

use std::sync::Arc;

use bytes::Bytes;
use futures::channel::mpsc;
use http_body::Frame;
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use kube::client::retry::RetryPolicy;
use olm_proof::Actor;
use olm_runtime::client::AnswerLimit;
use olm_world::{Request, User};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use crate::scenario::CONTROLLER;
use crate::subject;

/// Body of an answer: complete, or the stream of a watch.
pub(crate) type AnswerBody =
    Either<Full<Bytes>, StreamBody<mpsc::UnboundedReceiver<Result<Frame<Bytes>, BoxError>>>>;

/// Method of a question to a catalog.
pub(crate) const CATALOG: &str = "CATALOG";
/// Method of a question to a registry.
pub(crate) const IMAGE: &str = "IMAGE";

/// Answer of the scheduler.
pub(crate) enum Reply {
    /// The API server answers.
    Response(http::Response<AnswerBody>),
    /// A catalog or a registry answers.
    Content,
    /// A catalog answers with what it had before.
    Former,
    /// A catalog answers with what it had before, as if it were current.
    Unmarked,
    /// The connection is cut.
    Cut,
}

/// A call that waits for its answer.
pub(crate) struct Pending {
    /// Number of the controller's process.
    pub(crate) process: u32,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Reply>,
    /// Text that orders the calls that wait at the same time, whatever order they came in.
    pub(crate) order: String,
}

/// Calls that wait.
#[derive(Default)]
pub(crate) struct Net {
    pending: Mutex<Vec<Pending>>,
    arrived: Notify,
}

impl Net {
    /// Returns the calls that came since.
    pub(crate) fn take(&self) -> Vec<Pending> {
        std::mem::take(&mut *self.pending.lock())
    }

    /// Waits for a call.
    pub(crate) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&self, process: u32, request: Request) -> Reply {
        let (reply, answer) = oneshot::channel();
        let order = format!("{} {}", order(&request), subject::current());
        self.pending.lock().push(Pending {
            process,
            request,
            reply,
            order,
        });
        self.arrived.notify_one();
        answer.await.unwrap_or(Reply::Cut)
    }

    /// Asks a catalog or a registry.
    pub(crate) async fn ask_about(&self, process: u32, method: &str, path: &str) -> Reply {
        let request = Request::new(Actor::Controller(process), method, path);
        self.ask(process, request).await
    }

    /// Returns the API client of a process, with the retries and the limits of the production client.
    pub(crate) fn client(self: &Arc<Self>, process: u32) -> kube::Client {
        let net = Arc::clone(self);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let net = Arc::clone(&net);
            async move {
                let request = read(process, request).await?;
                match net.ask(process, request).await {
                    Reply::Response(response) => Ok(response),
                    _ => Err(BoxError::from("connection reset by peer")),
                }
            }
        });
        let service = ServiceBuilder::new()
            .layer(AnswerLimit)
            .layer(RetryLayer::new(RetryPolicy::server_retry()))
            .service(service);
        kube::Client::new(service, "default")
    }
}

async fn read(process: u32, request: http::Request<kube::client::Body>) -> Result<Request, BoxError> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let path = parts
        .uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut out = Request::new(Actor::Controller(process), parts.method.as_str(), &path);
    out.user = User::named(CONTROLLER);
    out.content_type = header("content-type");
    out.accept = header("accept");
    "operator-controller/simulated".clone_into(&mut out.user_agent);
    let user = header("impersonate-user");
    out.impersonate_user = (!user.is_empty()).then_some(user);
    out.body = body.collect().await?.to_bytes().to_vec();
    Ok(out)
}

/// Orders calls. The names of events hold the time of the machine, so the events' other fields order them.
fn order(request: &Request) -> String {
    let body = String::from_utf8_lossy(&request.body);
    if !is_event(request) {
        return format!("{} {} {} {body}", request.method, request.path, request.query);
    }
    let event: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
    format!(
        "{} events {} {} {} {}",
        request.method, event["regarding"]["name"], event["reason"], event["note"], event["action"]
    )
}

/// Returns true for a write of an event.
pub(crate) fn is_event(request: &Request) -> bool {
    request.path.starts_with("/apis/events.k8s.io/")
}
