//! From an outcome to conditions, for all kinds.
