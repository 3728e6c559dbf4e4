//! State that all connections of a proxy share, and the error that cuts one of them.

use std::fmt;
use std::sync::Arc;

use super::old::OldAnswers;
use super::{Injector, Ledger, Upstream};

/// Error that ends a connection without a complete answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl std::error::Error for Cut {}

/// State that all connections of a proxy share.
pub(super) struct Context {
    pub(super) upstream: Upstream,
    pub(super) process: u32,
    pub(super) ledger: Arc<Ledger>,
    pub(super) injector: Arc<Injector>,
    pub(super) old: OldAnswers,
}
