//! Live state: an event whenever extensions, their revisions or the catalogs change.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::{Read, Shared};
use crate::source::Cluster;

/// Maximum number of pages of all readers that follow the cluster at a time: each has three watches.
const PAGES: usize = 128;
/// Shortest time between two events of a page.
const PAUSE: Duration = Duration::from_millis(500);

/// Permits for pages that follow the cluster.
pub(super) struct Watches(Arc<Semaphore>);

impl Default for Watches {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PAGES)))
    }
}

/// Answers with an event for the changes of each half second, for as long as the reader listens and may read. The watches have the
/// reader's rights.
pub(super) async fn events(server: Shared, Extension(reader): Read) -> Response {
    let own = reader.streams.clone().try_acquire_owned();
    let common = server.watches.0.clone().try_acquire_owned();
    let (Ok(own), Ok(common)) = (own, common) else {
        let message = "too many pages follow the cluster: close some";
        return (StatusCode::TOO_MANY_REQUESTS, message).into_response();
    };
    let changes = paced(changes(&reader.cluster));
    let ended = async move { server.door.ended(&reader).await };
    let events = changes.take_until(Box::pin(ended)).map(move |()| {
        let _held = (&own, &common);
        Ok::<_, Infallible>(Event::default().event("change").data(""))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// Returns an item for each change of a kind that pages show.
fn changes(cluster: &Cluster) -> BoxStream<'static, ()> {
    let client = cluster.client();
    stream::select_all([
        changes_of::<ClusterExtension>(Api::all(client.clone())),
        changes_of::<ClusterObjectSet>(Api::all(client.clone())),
        changes_of::<ClusterCatalog>(Api::all(client.clone())),
    ])
    .boxed()
}

fn changes_of<K>(api: Api<PartialObjectMeta<K>>) -> BoxStream<'static, ()>
where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watcher(api, watcher::Config::default())
        .default_backoff()
        .filter_map(async |event| match event {
            Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_) | watcher::Event::InitDone) => Some(()),
            // The page says what cannot be read; the watch begins again by itself, after a while.
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) | Err(_) => None,
        })
        .boxed()
}

/// Joins the items of each half second.
fn paced(changes: impl Stream<Item = ()> + Send + Unpin + 'static) -> impl Stream<Item = ()> + Send {
    stream::unfold((changes, Instant::now()), async |(mut changes, next)| {
        changes.next().await?;
        sleep_until(next).await;
        // What has come meanwhile is in the same event.
        while futures::FutureExt::now_or_never(changes.next())
            .flatten()
            .is_some()
        {}
        Some(((), (changes, Instant::now() + PAUSE)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_changes_is_one_event() {
        let (sender, receiver) = futures::channel::mpsc::unbounded();
        let mut events = std::pin::pin!(paced(receiver));
        for _ in 0..5 {
            sender.unbounded_send(()).unwrap();
        }
        assert!(events.next().await.is_some());
        let start = Instant::now();
        sender.unbounded_send(()).unwrap();
        sender.unbounded_send(()).unwrap();
        assert!(events.next().await.is_some());
        assert!(start.elapsed() >= PAUSE);
        drop(sender);
        assert!(events.next().await.is_none());
    }
}
