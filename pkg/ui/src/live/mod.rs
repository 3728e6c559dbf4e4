//! Pages about a cluster: what is installed, what could be, and why.
//!
//! The values of this module are what a server reads from the cluster; every text in them is untrusted.

mod account;
mod cluster_upgrade;
mod error;
mod extension;
mod extensions;
mod plan;
mod tables;
mod views;
mod what_if;

pub use account::{AccountView, account_page, sign_in_page};
pub use cluster_upgrade::{ClusterUpgradeView, cluster_upgrade_page};
pub use error::error_page;
pub use extension::{ExtensionView, extension_page};
pub use extensions::extensions_page;
pub use plan::{PlanView, plan_page};
pub use views::{ChoiceView, Fact, Row, TableView};
pub use what_if::{WhatIf, what_if_page};
