//! Limits of a server: timeouts, rate and number of connections.

use std::time::Duration;

/// Limits of a server. The defaults suit rare and short requests, such as scrapes and probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Timeout of a TLS handshake, of the first request after it, and of the head of every other request.
    pub head: Duration,
    /// Time that an idle HTTP/1.1 connection stays open after a response.
    pub idle: Duration,
    /// Time that an HTTP/2 connection stays open without a request in flight.
    pub http2_idle: Duration,
    /// Time window in which a client must read [`Limits::min_bytes`] bytes of a response. Only time in which the server
    /// waits for the client counts.
    pub stall: Duration,
    /// Minimum number of bytes that a client must read within [`Limits::stall`].
    pub min_bytes: u64,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections per client address.
    pub per_client: usize,
    /// Maximum number of concurrent requests. A request ends when its response is sent; over HTTP/2, when the client's window has
    /// room for all but the last bytes.
    pub requests: usize,
}

impl Limits {
    /// Limits of servers without limits of their own.
    pub const DEFAULT: Self = Self {
        head: Duration::from_secs(5),
        idle: Duration::from_secs(30),
        http2_idle: Duration::from_mins(1),
        stall: Duration::from_mins(1),
        min_bytes: 64 * 1024,
        http2_streams: 32,
        connections: 128,
        per_client: 64,
        requests: 128,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
