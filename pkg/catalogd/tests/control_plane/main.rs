//! catalogd against a real API server and a real registry.

mod collection;
mod life;
mod policy;
mod silent_registry;
mod template;
mod world;
