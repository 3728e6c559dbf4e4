//! Which bundles may follow the installed one.
