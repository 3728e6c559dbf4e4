//! Server side of the HTTP proxy: connections and requests of the controller.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch as signal;

use super::Gate;
use super::context::{Context, Cut};
use super::fault::Fault;
use super::request::{Target, Verb};
use super::watch;

/// Body of an answer. An error in the body cuts the connection.
pub(super) type Body = UnsyncBoxBody<Bytes, Cut>;

/// Accepts connections until its task is aborted.
pub(super) async fn accept(listener: TcpListener, state: signal::Receiver<Gate>, context: Arc<Context>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if *state.borrow() == Gate::Open {
            tokio::spawn(connection(stream, state.clone(), context.clone()));
        }
    }
}

async fn connection(stream: TcpStream, mut state: signal::Receiver<Gate>, context: Arc<Context>) {
    // Small answers must not wait for the acknowledgement of earlier ones.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(context.clone(), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ended = connection => {}
        _shut = state.wait_for(|gate| *gate == Gate::Shut) => {}
    }
}

/// Answers a request: passes it on to the API server, with its fault.
async fn answer(context: Arc<Context>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let path_and_query = parts
        .uri
        .path_and_query()
        .map_or("/", |text| text.as_str())
        .to_owned();
    let target = Target::read(&parts.method, parts.uri.path(), &query);
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let fault = context.injector.fault_of(&target);
    let floor = context.ledger.newest();
    let line = format!("{} {path_and_query}", target.verb.as_str());
    let note = |rest: &str| context.injector.note(&format!("{line} {rest}"));
    let old = match fault {
        Some(Fault::OldAnswer) => context.old.oldest(&path_and_query),
        _ => None,
    };
    if let Some(fault) = fault.filter(|fault| *fault != Fault::OldAnswer || old.is_some()) {
        note(&format!("FAULT {fault}"));
        context.injector.count(fault);
    }
    if let Some(old) = old {
        return Ok(json_answer(StatusCode::OK, old));
    }
    match fault {
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::Refuse(status)) => return Ok(refusal(status)),
        Some(Fault::Expire) => return Ok(refusal(410)),
        Some(Fault::Lose) => return Err(Cut),
        Some(Fault::KillBefore) => {
            context.injector.kill();
            return Err(Cut);
        }
        _ => {}
    }
    let sent = context
        .upstream
        .send(parts.method, &path_and_query, &parts.headers, body.clone())
        .await;
    let answer = sent.map_err(|error| {
        note(&format!("failed: {error}"));
        Cut
    })?;
    let status = answer.status();
    let mut response = Response::builder().status(status);
    for name in [header::CONTENT_TYPE, header::RETRY_AFTER, header::WARNING] {
        for value in answer.headers().get_all(&name) {
            response = response.header(&name, value);
        }
    }
    if target.verb == Verb::Watch && status.is_success() {
        note("200");
        let events = watch::events(context.clone(), target.resource, answer);
        return response
            .body(StreamBody::new(events).boxed_unsync())
            .map_err(|_| Cut);
    }
    let bytes = answer.bytes().await.map_err(|_| Cut)?;
    if status.is_success() && target.changes_objects() {
        context
            .ledger
            .record(context.process, &target, floor, &body, &bytes);
    }
    if status.is_success() && target.verb == Verb::List {
        context.old.remember(&path_and_query, &bytes);
    }
    note(status.as_str());
    match fault {
        Some(Fault::ApplyAndLose) => Err(Cut),
        Some(Fault::ApplyAndRefuse(status)) => Ok(refusal(status)),
        Some(Fault::KillAfter) => {
            context.injector.kill();
            Err(Cut)
        }
        Some(Fault::Truncate) => {
            let half = bytes.slice(..bytes.len() / 2);
            let parts = [Ok(Frame::data(half)), Err(Cut)];
            let body = StreamBody::new(futures::stream::iter(parts)).boxed_unsync();
            response
                .header(header::CONTENT_LENGTH, bytes.len())
                .body(body)
                .map_err(|_| Cut)
        }
        _ => response.body(full(bytes)).map_err(|_| Cut),
    }
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// Returns the answer of an API server with this HTTP status.
fn refusal(status: u16) -> Response<Body> {
    let (reason, message) = match status {
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version",
        ),
        410 => ("Expired", "too old resource version"),
        429 => ("TooManyRequests", "too many requests, please try again later"),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => ("Timeout", "request did not complete within the allowed timeout"),
        _ => ("InternalError", "an internal error occurred"),
    };
    let body = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": status,
        "reason": reason, "message": message});
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_answer(status, body.to_string().into());
    if matches!(status.as_u16(), 429 | 503) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn json_answer(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
