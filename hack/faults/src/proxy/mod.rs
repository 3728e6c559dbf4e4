//! Proxies that inject faults: an HTTP proxy between a controller and the API server ([`Proxy`]), and a TCP proxy before the
//! registry and catalogd ([`Tunnel`]).
//!
//! The HTTP proxy authenticates to the API server as the controller's user. It passes impersonation headers on, and a bearer
//! token of the controller takes the place of the proxy's certificate. It records each accepted write with its sender in the
//! [`Ledger`]. An [`Injector`] chooses the faults.

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

/// A running HTTP proxy on its own port. Dropping it cuts all connections.
pub struct Proxy {
    address: SocketAddr,
    gate: signal::Sender<Gate>,
    context: Arc<context::Context>,
    task: JoinHandle<()>,
}

/// State of the proxy towards the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Connections are accepted.
    Open,
    /// Open connections are cut, and new ones refused.
    Shut,
}

impl Proxy {
    /// Starts a proxy for a controller. `process` is the number of the controller in the ledger.
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

    /// Cuts all connections and refuses new ones, so that no request of the controller reaches the API server.
    pub fn shut(&self) {
        self.gate.send_replace(Gate::Shut);
    }

    /// Accepts connections again.
    pub fn open(&self) {
        self.gate.send_replace(Gate::Open);
    }

    /// Lets faults also return old answers to lists without a resource version, which must be consistent by the contract of the
    /// API.
    pub fn break_list_contract(&self) {
        self.context.old.break_contract();
    }

    /// Returns the source of faults, which also keeps the log of requests.
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
