//! What the end-to-end features share: the content they publish, the environment they run in, and how they look
//! at a cluster's objects.

pub mod cluster;
pub mod content;
pub mod environment;
pub mod granted;
pub mod history;
