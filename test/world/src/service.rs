//! A client of a world that is served at once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use olm_proof::Actor;
use parking_lot::Mutex;
use serde_json::Value;

use crate::request::{Answer, Request, User};
use crate::watch::{WatchRequest, line};
use crate::world::World;

/// Interval in which an open watch looks for events.
const POLL: Duration = Duration::from_millis(5);

/// Clock of a world that is served at once.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Returns a client of the administrator whose requests `world` handles at once, at the time of `clock`.
pub fn client(world: Arc<Mutex<World>>, actor: Actor, clock: Clock) -> Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (world, actor, clock) = (Arc::clone(&world), actor.clone(), Arc::clone(&clock));
        async move {
            let request = read(request, actor).await?;
            let answer = world.lock().handle(&request, clock());
            Ok::<_, tower::BoxError>(match answer {
                Answer::Response {
                    status,
                    headers,
                    body,
                    changes: _,
                } => response(status, &headers, Full::from(body).boxed_unsync())?,
                Answer::Watch(watch) => {
                    let headers = [("content-type".to_owned(), "application/json".to_owned())];
                    response(200, &headers, watched(world, watch))?
                }
            })
        }
    });
    Client::new(service, "default")
}

/// Reads a request of kube's client.
///
/// # Errors
/// The body cannot be read.
pub async fn read(request: http::Request<Body>, actor: Actor) -> Result<Request, tower::BoxError> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let groups = parts.headers.get_all("impersonate-group").iter();
    let user = header("impersonate-user");
    Ok(Request {
        actor,
        user: User::admin(),
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: header(CONTENT_TYPE.as_str()),
        accept: header(ACCEPT.as_str()),
        user_agent: header(USER_AGENT.as_str()),
        impersonate_user: (!user.is_empty()).then_some(user),
        impersonate_groups: groups
            .filter_map(|group| group.to_str().ok().map(ToOwned::to_owned))
            .collect(),
        body: body.collect().await?.to_bytes().to_vec(),
    })
}

/// Body of an answer.
pub type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// Builds an answer for kube's client.
///
/// # Errors
/// A header is invalid.
pub fn response(
    status: u16,
    headers: &[(String, String)],
    body: AnswerBody,
) -> Result<http::Response<AnswerBody>, http::Error> {
    let mut builder = http::Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder.body(body)
}

/// Returns the body of a watch: events are sent as soon as they are in the history.
fn watched(world: Arc<Mutex<World>>, watch: Box<WatchRequest>) -> AnswerBody {
    let first = watch.start(&world.lock());
    let (frames, open) = match first {
        Ok(frames) => (frames, true),
        Err(error) => (vec![error], false),
    };
    let after = watch.after;
    let rest = stream::unfold(
        (world, watch, after, open),
        async |(world, mut watch, mut after, open)| {
            loop {
                if !open {
                    return None;
                }
                let frames: Result<Vec<Value>, Value> = {
                    let world = world.lock();
                    watch.after = after;
                    watch.check(&world).map(|()| {
                        after = world.revision();
                        watch.frames(world.history(watch.after))
                    })
                };
                match frames {
                    Ok(frames) if frames.is_empty() => tokio::time::sleep(POLL).await,
                    Ok(frames) => return Some((frames, (world, watch, after, true))),
                    Err(error) => return Some((vec![error], (world, watch, after, false))),
                }
            }
        },
    );
    let frames = stream::iter([frames]).chain(rest).map(|frames| {
        let bytes: Vec<u8> = frames.iter().flat_map(line).collect();
        Ok::<_, Infallible>(Frame::data(Bytes::from(bytes)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Returns a clock that always shows the same time.
pub fn stopped_clock(now: Timestamp) -> Clock {
    Arc::new(move || now)
}
