//! Comparison of watches: the events of a sequence, seen from its start.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use olm_proof::Actor;
use olm_world::{Answer, Request, World};
use serde_json::{Value, json};

use crate::compare::{Names, is_ours, object};
use crate::kinds::{Kind, fields};
use crate::rng::Rng;
use crate::step::Step;

/// Limit for the events of a sequence to arrive.
const LIMIT: Duration = Duration::from_secs(20);
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Watch of a kind during a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) kind: Kind,
    selector: &'static str,
    accept: &'static str,
}

impl Watch {
    /// Returns the watch of a seed.
    pub(crate) fn of(seed: u64, kind: Kind) -> Self {
        let mut rng = Rng::new(seed ^ 0x77);
        Self {
            kind,
            selector: rng.pick(&["", "", "l1=x", "l1", "l2%20notin%20(y)", "l1%20in%20(x,y)"]),
            accept: rng.pick(&["application/json", METADATA]),
        }
    }

    /// Returns the request that ends the sequence: the watch sees its object.
    pub(crate) fn last(&self) -> Step {
        let mut body = fields(&mut Rng::new(1), &self.kind, false);
        body["apiVersion"] = json!(self.kind.api_version());
        body["kind"] = json!(self.kind.kind);
        body["metadata"] = json!({"name": self.kind.name("end"), "labels": {"l1": "x"}});
        Step::new("POST", self.kind.list()).body(body)
    }

    /// Returns path and query of the watch from a resource version on.
    pub(crate) fn target(&self, list: &str, version: &str) -> String {
        format!(
            "{list}?watch=true&timeoutSeconds=30&labelSelector={}&resourceVersion={version}",
            self.selector
        )
    }

    /// Returns the events in the world.
    pub(crate) fn of_world(&self, world: &mut World, target: &str) -> Result<Vec<Value>> {
        let mut request = Request::new(Actor::Controller(0), "GET", target);
        self.accept.clone_into(&mut request.accept);
        match world.handle(&request, Timestamp::now()) {
            Answer::Watch(watch) => Ok(watch.frames(world.history(watch.after))),
            Answer::Response { status, .. } => bail!("the world answers a watch with {status}"),
        }
    }

    /// Returns the events of the real server up to the last object.
    pub(crate) async fn of_real(&self, client: &Client, target: &str, last: &str) -> Result<Vec<Value>> {
        let request = http::Request::get(target)
            .header("accept", self.accept)
            .body(Body::empty())?;
        let response = client.send(request).await?;
        let mut frames = response.into_body().into_data_stream();
        let mut rest: Vec<u8> = Vec::new();
        let mut out = Vec::new();
        let read = async {
            while let Some(bytes) = frames.next().await {
                rest.extend_from_slice(&bytes?);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let event: Value = serde_json::from_slice(&line)?;
                    let done = event["object"]["metadata"]["name"] == last;
                    out.push(event);
                    if done {
                        return Ok(());
                    }
                }
            }
            bail!("the watch of {target} ended without {last}: {out:?}")
        };
        tokio::time::timeout(LIMIT, read)
            .await
            .with_context(|| format!("the watch of {target} does not show {last}"))??;
        Ok(out)
    }
}

/// Returns events in comparable form.
pub(crate) fn comparable(events: &[Value], names: &mut Names) -> Value {
    let prefix = names.prefix().to_owned();
    let ours = events.iter().filter(|event| is_ours(&event["object"], &prefix));
    let shown: Vec<Value> = ours
        .map(|event| json!({"type": event["type"], "object": object(&event["object"], names)}))
        .collect();
    json!(shown)
}
