//! The commands, one module each.

pub(crate) mod bundle;
pub(crate) mod cluster_upgrade;
pub(crate) mod common;
pub(crate) mod completion;
pub(crate) mod config;
mod crd_files;
pub(crate) mod crd_safety;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod extension;
pub(crate) mod graph;
pub(crate) mod install_controllers;
pub(crate) mod range;
pub(crate) mod resolve;
pub(crate) mod search;
mod served;
pub(crate) mod show;
pub(crate) mod support_bundle;
pub(crate) mod tree;
pub(crate) mod uninstall_controllers;
pub(crate) mod validate;
pub(crate) mod versions;
pub(crate) mod why;
