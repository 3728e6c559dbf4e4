//! Chores of the project: generate, controlplane, demo, check, test.
fn main() {}
