//! Server of the web pages about a cluster.
//!
//! The pages are those of `olm-ui`. What they show is read with the rights of the reader, who comes in by a [`Door`]; the server writes
//! nothing but dry runs.

mod account;
mod answer;
mod blocks;
mod catalogs;
mod door;
mod extension;
mod guard;
mod package;
mod pages;
mod plan;
mod reader;
mod resolver;
mod tables;
mod watch;

use std::future::IntoFuture as _;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tokio::net::TcpListener;

pub(crate) use door::{Door, Key, KeyDoor, TokenDoor, TokenSettings};
pub(crate) use reader::Reader;

/// State of the server.
pub(crate) struct Server {
    door: Door,
    catalogs: catalogs::Catalogs,
    plans: plan::Plans,
    watches: watch::Watches,
}

/// The state as handlers have it.
type Shared = axum::extract::State<Arc<Server>>;
/// The reader as handlers have it.
type Read = axum::Extension<Arc<Reader>>;

impl Server {
    /// Creates a server whose readers come in by `door`.
    pub(crate) fn new(door: Door) -> Self {
        Self {
            door,
            catalogs: catalogs::Catalogs::default(),
            plans: plan::Plans::default(),
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

    /// Returns the routes.
    pub(crate) fn router(self) -> Router {
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
            .route("/account.html", get(pages::account))
            .route("/events", get(watch::events))
            .route("/sign-in", get(door::sign_in).post(door::sign_in))
            .route("/sign-out", post(door::sign_out))
            .fallback(pages::absent)
            .layer(from_fn_with_state(state.clone(), guard::guard))
            .with_state(state)
    }
}
