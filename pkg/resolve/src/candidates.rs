//! The bundles of one catalog: which are suitable, and in what order.
