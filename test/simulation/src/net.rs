//! The network of a run: every call of a process waits here until the scheduler answers it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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

use crate::fault::Kind;
use crate::hash;
use crate::scenario::CONTROLLER;
use crate::subject;

/// Body of an answer: complete, or the stream of a watch.
pub(crate) type AnswerBody =
    Either<Full<Bytes>, StreamBody<mpsc::UnboundedReceiver<Result<Frame<Bytes>, BoxError>>>>;

/// Pseudo method of a question to a catalog.
pub(crate) const CATALOG: &str = "CATALOG";
/// Pseudo method of a question to a registry.
pub(crate) const IMAGE: &str = "IMAGE";

/// Answer of the scheduler to a call.
pub(crate) enum Reply {
    /// The API server answers.
    Response(http::Response<AnswerBody>),
    /// A catalog or a registry answers.
    Content,
    /// A catalog answers with its former content and marks the answer as such.
    Former,
    /// A catalog answers with its former content as if it were current. Only a planted bug does so.
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
    /// Sort key of the calls that wait at the same time. It does not depend on the order of their arrival.
    pub(crate) order: String,
    /// Hash of the call, without what differs between runs that are equal otherwise.
    pub(crate) hash: u64,
}

/// Calls that the scheduler has not taken yet.
#[derive(Default)]
pub(crate) struct Net {
    pending: Mutex<Vec<Pending>>,
    arrived: Notify,
}

impl Net {
    /// Removes and returns the calls that arrived since the last time.
    pub(crate) fn take(&self) -> Vec<Pending> {
        std::mem::take(&mut *self.pending.lock())
    }

    /// Waits until a call arrives.
    pub(crate) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    /// Sends a call and waits for the answer.
    pub(crate) async fn ask(&self, process: u32, request: Request) -> Reply {
        let (reply, answer) = oneshot::channel();
        let hash = hash_of(&request);
        let order = format!("{} {}", order(&request), subject::current());
        self.pending.lock().push(Pending {
            process,
            request,
            reply,
            order,
            hash,
        });
        self.arrived.notify_one();
        answer.await.unwrap_or(Reply::Cut)
    }

    /// Sends a question to a catalog or a registry and waits for the answer.
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

/// Converts a request of the API client to one of the simulated API server.
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

/// Returns the sort key of a call. Names of Events contain the time of the machine, so other fields order the calls that write
/// Events.
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

/// Returns the hash of a call. Queries are left out, because they name resource versions.
fn hash_of(request: &Request) -> u64 {
    let mut hasher = DefaultHasher::new();
    if is_event(request) {
        order(request).hash(&mut hasher);
    } else {
        (&request.method, &request.path, Kind::of(request)).hash(&mut hasher);
        request.impersonate_user.hash(&mut hasher);
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        hash::value(&body, &mut hasher);
    }
    hasher.finish()
}

/// Returns true for a request about Events.
pub(crate) fn is_event(request: &Request) -> bool {
    request.path.starts_with("/apis/events.k8s.io/")
}
