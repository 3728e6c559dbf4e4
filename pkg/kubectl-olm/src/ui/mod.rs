//! Server of the web pages about a cluster.
//!
//! The pages are those of `olm-ui`. The server reads what they show with the rights of its user, and writes nothing but dry runs.
//! It answers only who knows its key: other users of the machine reach loopback addresses, too.

mod answer;
mod catalogs;
mod extension;
mod guard;
mod key;
mod pages;
mod tables;
mod watch;

use std::future::IntoFuture as _;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::cli::AccessArgs;
use crate::source::Cluster;

pub(crate) use key::Key;

/// State of the server.
pub(crate) struct Server {
    cluster: Cluster,
    access: AccessArgs,
    key: Key,
    port: u16,
    catalogs: catalogs::Catalogs,
    watches: watch::Watches,
}

/// The state as handlers have it.
type Shared = axum::extract::State<Arc<Server>>;

impl Server {
    /// Creates a server of a cluster for who knows `key`, on a port of the loopback address.
    pub(crate) fn new(cluster: Cluster, access: AccessArgs, key: Key, port: u16) -> Self {
        Self {
            cluster,
            access,
            key,
            port,
            catalogs: catalogs::Catalogs::default(),
            watches: watch::Watches::default(),
        }
    }

    /// Serves until the process is interrupted.
    ///
    /// # Errors
    /// The listener fails.
    pub(crate) async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let serving = axum::serve(listener, self.router());
        tokio::select! {
            served = serving.into_future() => served,
            interrupted = tokio::signal::ctrl_c() => interrupted,
        }
    }

    fn router(self) -> Router {
        let state = Arc::new(self);
        Router::new()
            .route("/", get(pages::root))
            .route("/style.css", get(pages::style))
            .route("/icon.svg", get(pages::own_icon))
            .route("/ui.js", get(pages::script))
            .route("/extensions.html", get(pages::extensions))
            .route("/extensions/{file}", get(pages::extension))
            .route("/plans/{file}", get(pages::plan))
            .route("/index.html", get(pages::packages))
            .route("/catalogs.html", get(pages::catalogs))
            .route("/packages/{catalog}/{file}", get(pages::package))
            .route("/graphs/{catalog}/{file}", get(pages::graph))
            .route("/icons/{file}", get(pages::icon))
            .route("/what-if.html", get(pages::what_if))
            .route("/cluster-upgrade.html", get(pages::cluster_upgrade))
            .route("/events", get(watch::events))
            .fallback(pages::absent)
            .layer(from_fn_with_state(state.clone(), guard::guard))
            .with_state(state)
    }
}
