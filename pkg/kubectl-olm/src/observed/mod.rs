//! Values that the cluster has of extensions: the content of the commands' tables and of the pages of `kubectl olm ui`.

mod choice;
mod cluster_upgrade;
mod events;
mod history;
mod listing;
mod tree;

pub(crate) use choice::CatalogChoice;
pub(crate) use cluster_upgrade::{ClusterUpgrade, Upgrade};
pub(crate) use events::EventRow;
pub(crate) use history::RevisionRow;
pub(crate) use listing::Listing;
pub(crate) use tree::{ObjectHealth, Tree};
