//! Limits of a server: time, rate and number of connections.

use std::time::Duration;

/// Limits of a server. The defaults suit seldom and short requests, as those of scrapers and probes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Time for a TLS handshake, for the first request after it, and for the head of every other request.
    pub head: Duration,
    /// Time that an HTTP/1.1 connection stays open without a byte after an answer.
    pub idle: Duration,
    /// Time that an HTTP/2 connection stays open without a request under way.
    pub quiet: Duration,
    /// Time in which the client of an answer takes at least [`Traffic::least`] bytes of it. Only time in which the
    /// server waits for the client counts.
    pub stall: Duration,
    /// Fewest bytes of an answer that a client takes within [`Traffic::stall`].
    pub least: u64,
    /// Most requests at once on one HTTP/2 connection.
    pub streams: u32,
    /// Most connections at once.
    pub connections: usize,
    /// Most connections at once of one client address.
    pub per_client: usize,
    /// Most requests at once.
    pub answers: usize,
}

impl Traffic {
    /// The limits of servers without limits of their own.
    pub const DEFAULT: Self = Self {
        head: Duration::from_secs(5),
        idle: Duration::from_secs(30),
        quiet: Duration::from_mins(1),
        stall: Duration::from_mins(1),
        least: 64 * 1024,
        streams: 32,
        connections: 128,
        per_client: 64,
        answers: 128,
    };
}

impl Default for Traffic {
    fn default() -> Self {
        Self::DEFAULT
    }
}
