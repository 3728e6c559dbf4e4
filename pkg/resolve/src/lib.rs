//! Which bundle, and why: candidates, successors, ordering, catalogs' priority.
