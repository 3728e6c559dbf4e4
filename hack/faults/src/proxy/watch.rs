//! Streams of watch events, which pass the proxy line by line.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::mpsc;

use super::context::{Context, Cut};
use super::fault::Fault;

type Item = Result<Frame<Bytes>, Cut>;

/// Returns the lines of a watch, with the faults of events. The watch on the API server ends when the stream is dropped.
pub(super) fn events(
    context: Arc<Context>,
    resource: String,
    answer: reqwest::Response,
) -> impl Stream<Item = Item> {
    let (sender, mut receiver) = mpsc::channel(64);
    tokio::spawn(async move {
        tokio::select! {
            () = pass(&context, &resource, answer, &sender) => {}
            () = sender.closed() => {}
        }
    });
    futures::stream::poll_fn(move |waker| receiver.poll_recv(waker))
}

/// Passes the lines of a watch to the sender until the watch ends or a fault ends it.
async fn pass(context: &Context, resource: &str, mut answer: reqwest::Response, sender: &mpsc::Sender<Item>) {
    let mut buffer = BytesMut::new();
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => buffer.extend_from_slice(&chunk),
            Ok(None) => return,
            Err(_) => {
                let _gone = sender.send(Err(Cut)).await;
                return;
            }
        }
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(end + 1).freeze();
            let fault = if is_change(&line) {
                context.injector.fault_of_event(resource)
            } else {
                None
            };
            if let Some(fault) = fault {
                context
                    .injector
                    .note(&format!("event of {resource} FAULT {fault}: {}", head(&line)));
                context.injector.count(fault);
            }
            match fault {
                Some(Fault::HoldEvent(time)) => tokio::time::sleep(time).await,
                Some(Fault::CutAtEvent) => {
                    let _gone = sender.send(Err(Cut)).await;
                    return;
                }
                Some(Fault::ExpireAtEvent) => {
                    let _gone = sender.send(Ok(Frame::data(expired()))).await;
                    return;
                }
                _ => {}
            }
            if sender.send(Ok(Frame::data(line))).await.is_err() {
                return;
            }
        }
    }
}

/// Returns true if the line is a change of an object, and no bookmark or error.
fn is_change(line: &[u8]) -> bool {
    let begins = |kind: &str| line.starts_with(format!("{{\"type\":\"{kind}\"").as_bytes());
    begins("ADDED") || begins("MODIFIED") || begins("DELETED")
}

/// Returns the type, the name and the resource version of an event, for the log.
fn head(line: &[u8]) -> String {
    let event: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    let metadata = &event["object"]["metadata"];
    format!(
        "{} {} at {}",
        event["type"], metadata["name"], metadata["resourceVersion"]
    )
}

/// Returns an event with the error 410.
fn expired() -> Bytes {
    let error = json!({"type": "ERROR", "object": {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": 410, "reason": "Expired", "message": "too old resource version"}});
    format!("{error}\n").into()
}
