//! TCP proxy before the registry and the content server of catalogd. It cannot read requests, because catalogd speaks TLS with
//! its own certificate.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch as signal;
use tokio::task::JoinHandle;

use super::Injected;

/// Size of a chunk of a slow answer, in bytes.
const SLOW_CHUNK: usize = 256;
/// Pause before each chunk of a slow answer.
const SLOW_PAUSE: Duration = Duration::from_millis(50);
/// Answer of a failing server without TLS.
const FAILURE: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A fault of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TunnelFault {
    /// The connection is closed at once.
    Refuse,
    /// The connection passes no bytes for this time.
    Delay(Duration),
    /// The connection is closed after this number of bytes of the answer.
    CutAfter(usize),
    /// The answer passes in chunks of 256 bytes, twenty per second, for two seconds, and then at full speed.
    Slow,
    /// The first request gets the answer 500. Only for servers without TLS.
    Fail,
}

impl TunnelFault {
    /// Returns the name of the fault in reports.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Refuse => "connection refused",
            Self::Delay(_) => "connection delayed",
            Self::CutAfter(_) => "answer truncated",
            Self::Slow => "slow bytes",
            Self::Fail => "answered 500",
        }
    }
}

impl fmt::Display for TunnelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(time) => write!(f, "{} {time:?}", self.kind()),
            Self::CutAfter(bytes) => write!(f, "{} after {bytes} bytes", self.kind()),
            other => f.write_str(other.kind()),
        }
    }
}

/// A running TCP proxy on its own port. Dropping it cuts all connections.
#[derive(Debug)]
pub struct Tunnel {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    /// Address of the server, as `HOST:PORT`.
    target: Mutex<String>,
    /// Faults of the next connections.
    faults: Mutex<VecDeque<TunnelFault>>,
    injected: Mutex<Injected>,
    /// Generation of connections. When it grows, all connections of the former generation are cut.
    generation: signal::Sender<u64>,
}

impl Tunnel {
    /// Starts a tunnel to `target`, an address `HOST:PORT`.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(target: &str) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr().context("a listener has no address")?;
        let state = Arc::new(State {
            target: Mutex::new(target.to_owned()),
            faults: Mutex::default(),
            injected: Mutex::new(BTreeMap::new()),
            generation: signal::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, state.clone()));
        Ok(Self { address, state, task })
    }

    /// Returns the address of the tunnel, `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Directs new connections to another server.
    pub fn set_target(&self, target: &str) {
        target.clone_into(&mut self.state.target.lock());
    }

    /// Gives each of the next connections one of the faults, in order, and cuts the present connections. Without faults, the
    /// present connections stay and the next ones pass.
    pub fn set_faults(&self, faults: &[TunnelFault]) {
        *self.state.faults.lock() = faults.iter().copied().collect();
        if !faults.is_empty() {
            self.state.generation.send_modify(|generation| *generation += 1);
        }
    }

    /// Returns the numbers of faults by name since the last call.
    pub fn take_injected(&self) -> Injected {
        std::mem::take(&mut self.state.injected.lock())
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
        self.state.generation.send_modify(|generation| *generation += 1);
    }
}

/// Accepts connections until its task is aborted. Each connection ends when the generation grows.
async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut generations = state.generation.subscribe();
        let state = state.clone();
        tokio::spawn(async move {
            tokio::select! {
                _closed = connection(stream, &state) => {}
                _cut = generations.changed() => {}
            }
        });
    }
}

/// Passes a connection on, with the next fault.
async fn connection(mut client: TcpStream, state: &State) -> std::io::Result<()> {
    let fault = state.faults.lock().pop_front();
    if let Some(fault) = fault {
        *state.injected.lock().entry(fault.kind()).or_default() += 1;
    }
    match fault {
        Some(TunnelFault::Refuse) => return Ok(()),
        Some(TunnelFault::Fail) => {
            let _request = client.read(&mut [0; 4096]).await?;
            return client.write_all(FAILURE).await;
        }
        Some(TunnelFault::Delay(time)) => tokio::time::sleep(time).await,
        _ => {}
    }
    let target = state.target.lock().clone();
    let mut server = TcpStream::connect(target).await?;
    match fault {
        Some(TunnelFault::CutAfter(bytes)) => limited(client, server, bytes, Duration::ZERO).await.map(drop),
        Some(TunnelFault::Slow) => {
            let (mut client, mut server) = limited(client, server, SLOW_CHUNK * 40, SLOW_PAUSE).await?;
            copy_bidirectional(&mut client, &mut server).await.map(drop)
        }
        _ => copy_bidirectional(&mut client, &mut server).await.map(drop),
    }
}

/// Passes at most `bytes` bytes of the answer, with a pause before each chunk, and meanwhile the whole request. Returns both
/// connections.
async fn limited(
    client: TcpStream,
    server: TcpStream,
    bytes: usize,
    pause: Duration,
) -> std::io::Result<(TcpStream, TcpStream)> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut left = bytes;
    let answer = async {
        let mut chunk = [0; SLOW_CHUNK];
        while left > 0 {
            let room = chunk.get_mut(..left.min(SLOW_CHUNK)).unwrap_or_default();
            let count = from_server.read(room).await?;
            tokio::time::sleep(pause).await;
            to_client
                .write_all(chunk.get(..count).unwrap_or_default())
                .await?;
            if count == 0 {
                break;
            }
            left -= count;
        }
        Ok::<(), std::io::Error>(())
    };
    tokio::select! {
        done = answer => done?,
        _ended = tokio::io::copy(&mut from_client, &mut to_server) => {}
    }
    let rejoin = |error: tokio::net::tcp::ReuniteError| std::io::Error::other(error.to_string());
    Ok((
        from_client.reunite(to_client).map_err(rejoin)?,
        from_server.reunite(to_server).map_err(rejoin)?,
    ))
}
