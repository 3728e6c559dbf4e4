//! Registries that lie, drip, or send clients elsewhere.

use std::sync::Arc;

use olm_harness::stub::{Answer, Asked, answer};

use crate::{Case, Expect, Scale, Subject};

pub(super) fn cases(_scale: Scale) -> Vec<Case> {
    vec![of(
        "unavailable",
        Expect::Refused("not able to answer now"),
        |_| answer(503, &[("retry-after", "3600")], ""),
    )]
}

fn of(name: &str, expect: Expect, handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Case {
    Case::of(name, Subject::Catalog(Arc::new(handler)), expect)
}
