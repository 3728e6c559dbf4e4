//! The macro of pastey, the maintained successor of paste, under the name of paste.

pub use pastey::paste;
