//! What was read, by catalog, digest and package.
