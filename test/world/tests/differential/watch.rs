//! Comparison of watches: the events of a sequence seen from its start, the objects and the bookmark that a watch after it
//! starts with, and the refusal of a watch from a forgotten resource version.

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

use crate::compare::{Names, is_ours, object, status};
use crate::kinds::{Kind, fields};
use crate::rng::Rng;
use crate::step::Step;

/// Limit for the events of a sequence to arrive, on a busy machine.
const LIMIT: Duration = Duration::from_mins(2);
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Place in the history where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// The resource version before the sequence.
    Start,
    /// A resource version whose events both servers have forgotten.
    Forgotten,
    /// The objects after the sequence, with a bookmark behind them.
    Objects,
}

/// Watch of a kind during a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) kind: Kind,
    begin: Begin,
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
            begin: match rng.below(5) {
                // The real server knows the events of its own kinds from its start on.
                0 if kind.is_custom() => Begin::Forgotten,
                1 => Begin::Objects,
                _ => Begin::Start,
            },
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

    /// Returns path and query of the watch; `version` is the resource version before the sequence.
    fn target(&self, list: &str, version: &str) -> String {
        let from = match self.begin {
            Begin::Start => format!("resourceVersion={version}"),
            Begin::Forgotten => "resourceVersion=1".to_owned(),
            Begin::Objects => {
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true".to_owned()
            }
        };
        let selector = self.selector;
        format!("{list}?watch=true&timeoutSeconds=150&labelSelector={selector}&{from}")
    }

    /// Returns the events in the world.
    pub(crate) fn of_world(&self, world: &mut World, list: &str, version: &str) -> Result<Vec<Value>> {
        let mut request = Request::new(Actor::Controller(0), "GET", &self.target(list, version));
        self.accept.clone_into(&mut request.accept);
        if self.begin == Begin::Forgotten {
            world.compact(world.revision());
        }
        match world.handle(&request, Timestamp::now()) {
            Answer::Watch(watch) => Ok(match watch.start(world) {
                Ok(mut frames) => {
                    frames.extend(watch.frames(world.history(watch.after)));
                    frames
                }
                Err(error) => vec![error],
            }),
            Answer::Response { status, .. } => bail!("the world answers a watch with {status}"),
        }
    }

    /// Returns true for the event after which the real server's watch is not read any further.
    fn ends_with(&self, event: &Value, last_name: &str) -> bool {
        match self.begin {
            Begin::Start => event["object"]["metadata"]["name"] == last_name,
            Begin::Forgotten => event["type"] == "ERROR",
            Begin::Objects => event["type"] == "BOOKMARK",
        }
    }

    /// Returns the events of the real server up to the last object, whose name is `last_name`.
    pub(crate) async fn of_real(
        &self,
        client: &Client,
        list: &str,
        version: &str,
        last_name: &str,
    ) -> Result<Vec<Value>> {
        let target = self.target(list, version);
        let request = http::Request::get(&target)
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
                    let done = self.ends_with(&event, last_name);
                    out.push(event);
                    if done {
                        return Ok(());
                    }
                }
            }
            bail!("the watch of {target} ended without {last_name}: {out:?}")
        };
        tokio::time::timeout(LIMIT, read)
            .await
            .with_context(|| format!("the watch of {target} does not show {last_name}"))??;
        Ok(out)
    }
}

/// Returns events in comparable form.
pub(crate) fn comparable(events: &[Value], names: &mut Names) -> Value {
    let prefix = names.prefix().to_owned();
    let shown = events.iter().filter_map(|event| {
        let object = match event["type"].as_str() {
            Some("ERROR") => status(&event["object"], names),
            Some("BOOKMARK") => {
                // The resource version of a bookmark counts the writes of other sequences, too.
                let mut bookmark = event["object"].clone();
                bookmark["metadata"]["resourceVersion"] = json!("VERSION");
                bookmark
            }
            _ if is_ours(&event["object"], &prefix) => object(&event["object"], names),
            _ => return None,
        };
        Some(json!({"type": event["type"], "object": object}))
    });
    json!(shown.collect::<Vec<_>>())
}
