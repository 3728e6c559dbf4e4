//! A simulated API server, held against the real one.
//!
//! [`World`] is a value: objects, resource versions, history. It answers requests as kube-apiserver does, as far as the
//! project's controllers use it, and [`World::tick`] does what kube-controller-manager does beside. The world has no clock
//! and no threads, so a scheduler decides what happens when: it hands over requests, ticks, and reads the history to
//! decide how far each watch lags. The test `differential` sends random sequences of requests to a world and to
//! kube-apiserver, and compares.

mod custom;
mod decode;
mod discovery;
mod form;
mod kinds;
mod list;
mod managed;
mod rbac;
mod request;
mod restore;
mod review;
mod selector;
pub mod service;
mod status;
mod store;
mod tick;
mod types;
mod value;
mod watch;
mod world;
mod write;

pub use request::{Answer, Request, User};
pub use store::{Event, Key};
pub use watch::{WatchRequest, line};
pub use world::{Options, World};
