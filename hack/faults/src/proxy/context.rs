//! What all connections share, and how one is cut.

use std::fmt;
use std::sync::Arc;

use super::old::OldAnswers;
use super::{Injector, Ledger, Upstream};

/// The connection ends here, without a complete answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl std::error::Error for Cut {}

/// Parts that all connections share.
pub(super) struct Context {
    pub(super) upstream: Upstream,
    pub(super) process: u32,
    pub(super) ledger: Arc<Ledger>,
    pub(super) injector: Arc<Injector>,
    pub(super) old: OldAnswers,
}
