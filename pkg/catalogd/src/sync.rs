//! Locks of the store. `tests/generations` compiles the store with locks whose order a scheduler chooses.

pub(crate) use parking_lot::{Mutex, RwLock};
