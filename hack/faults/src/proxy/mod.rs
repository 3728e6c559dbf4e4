//! HTTP proxy between a controller and the API server, and a TCP proxy before registry and catalogd.
//!
//! The HTTP proxy authenticates to the API server as the controller's user. Impersonation headers pass through, and a bearer token of the
//! controller replaces the proxy's certificate. Each accepted write is recorded in the [`Ledger`] with its sender. Faults come from an
//! [`Injector`].

mod context;
mod fault;
mod injector;
mod ledger;
mod old;
mod request;
mod serve;
mod tunnel;
mod upstream;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::sync::watch as signal;
use tokio::task::JoinHandle;

pub use fault::{Class, Fault, Rule};
pub use injector::{Injected, Injector};
pub use ledger::{Ledger, Sender};
use old::OldAnswers;
pub use request::{Target, Verb};
pub use tunnel::{Tunnel, TunnelFault};
pub use upstream::{Kubeconfig, Upstream};

/// A running proxy on a port of its own. Dropping it cuts all connections.
pub struct Proxy {
    address: SocketAddr,
    gate: signal::Sender<Gate>,
    context: Arc<context::Context>,
    task: JoinHandle<()>,
}

/// State of the door towards the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Connections are accepted.
    Open,
    /// No connection lives.
    Shut,
}

impl Proxy {
    /// Starts a proxy for the controller that is process number `process` in changes.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(upstream: Upstream, process: u32, ledger: Arc<Ledger>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr().context("a listener has no address")?;
        let (gate, state) = signal::channel(Gate::Open);
        let context = Arc::new(context::Context {
            upstream,
            process,
            ledger,
            injector: Arc::new(Injector::new(gate.clone())),
            old: OldAnswers::default(),
        });
        let task = tokio::spawn(serve::accept(listener, state, context.clone()));
        Ok(Self {
            address,
            gate,
            context,
            task,
        })
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts all connections and refuses new ones, so that nothing of the controller reaches the API server any more.
    pub fn shut(&self) {
        self.gate.send_replace(Gate::Shut);
    }

    /// Accepts connections again.
    pub fn open(&self) {
        self.gate.send_replace(Gate::Open);
    }

    /// Lets lists be old that are consistent by the contract of the API, not only those from the API server's cache.
    pub fn break_list_contract(&self) {
        self.context.old.break_contract();
    }

    /// Returns the source of faults, and the log of requests.
    pub fn injector(&self) -> &Injector {
        &self.context.injector
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shut();
        self.task.abort();
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
