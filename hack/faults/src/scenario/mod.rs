//! A scenario: one extension, the changes that its user makes, and the state that each change must lead to.

mod content;
mod expected;
mod user;

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use kube::Client;
use serde_json::Value;

use crate::{Expectation, World};

/// Content of a foreign Secret beside the extension. It must not appear in a status, an event or a revision.
pub const FOREIGN_SECRET: &str = "content-of-a-foreign-secret";

/// Facts that an expectation relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Promises {
    /// The API that every implementation has: `Installed`, `Progressing`, `status.install`, the objects of the bundle and their labels.
    Common,
    /// `Common`, and what only this project promises: `Ready`, and one active revision.
    #[default]
    All,
}

/// A version of the scenario's package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The first version. It has one `ConfigMap` more than the others.
    V1,
    /// The successor of `V1`. It can be rolled back.
    V2,
    /// The successor of both. Its CRD has one field more.
    V3,
}

impl Version {
    /// All versions in order.
    pub const ALL: [Self; 3] = [Self::V1, Self::V2, Self::V3];

    /// Returns the version number, such as `1.0.0`.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Self::V1 => "1.0.0",
            Self::V2 => "1.0.1",
            Self::V3 => "1.0.2",
        }
    }
}

/// A change by the user, or by somebody else who disturbs the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The extension is created with the first version.
    Install,
    /// The spec names the next version.
    Upgrade,
    /// The spec names the second version and, after this time, the third one.
    Overtaken(Duration),
    /// The spec names the first version again, by `upgradeConstraintPolicy: SelfCertified`.
    RollBack,
    /// Somebody changes a `ConfigMap` and the Deployment of the extension, and deletes its `ServiceAccount`.
    Drift,
    /// Somebody deletes the catalog and a `ConfigMap` of the extension.
    CatalogGone,
    /// The extension is deleted.
    Uninstall,
}

impl Stage {
    /// Returns true if the stage can follow while `version` is installed.
    #[must_use]
    pub fn fits(self, version: Option<Version>) -> bool {
        match self {
            Self::Install => version.is_none(),
            Self::Upgrade => matches!(version, Some(Version::V1 | Version::V2)),
            Self::Overtaken(_) => version == Some(Version::V1),
            Self::RollBack => version == Some(Version::V2),
            Self::Drift | Self::CatalogGone | Self::Uninstall => version.is_some(),
        }
    }

    /// Returns the installed version after the stage, if `version` was installed before.
    #[must_use]
    pub fn leads_to(self, version: Option<Version>) -> Option<Version> {
        match self {
            Self::Install | Self::RollBack => Some(Version::V1),
            Self::Upgrade if version == Some(Version::V1) => Some(Version::V2),
            Self::Upgrade | Self::Overtaken(_) => Some(Version::V3),
            Self::Drift | Self::CatalogGone => version,
            Self::Uninstall => None,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install => f.write_str("install"),
            Self::Upgrade => f.write_str("upgrade"),
            Self::Overtaken(after) => write!(f, "upgrade overtaken after {after:?}"),
            Self::RollBack => f.write_str("rollback"),
            Self::Drift => f.write_str("drift"),
            Self::CatalogGone => f.write_str("catalog gone"),
            Self::Uninstall => f.write_str("uninstall"),
        }
    }
}

/// One extension with its own namespace and catalog, and foreign objects in the same namespace.
#[derive(Debug)]
pub struct Scenario {
    id: String,
    catalog_image: String,
    /// Facts that the expectation relies on.
    promises: Promises,
    /// Version that must be installed now.
    installed: Option<Version>,
    /// True while the catalog exists.
    catalog: bool,
    /// Foreign objects as the API server created them.
    foreign: Vec<Value>,
}

impl Scenario {
    /// Pushes the content, and creates the namespace, the catalog and the foreign objects. `id` makes all names unique; it has at
    /// most 20 characters, which must be valid in a DNS label.
    ///
    /// # Errors
    /// The registry or the API server refuses something.
    pub async fn publish(world: &World, id: &str, promises: Promises) -> Result<Self> {
        let catalog_image = content::push(&world.registry, &world.registry_tunnel.address(), id).await?;
        let mut scenario = Self {
            id: id.to_owned(),
            catalog_image,
            promises,
            installed: None,
            catalog: false,
            foreign: Vec::new(),
        };
        let client = world.client();
        crate::world::ensure_namespace(&client, &scenario.namespace()).await?;
        scenario.foreign = user::create_foreign(&client, &scenario).await?;
        user::ensure_catalog(&client, &mut scenario).await?;
        Ok(scenario)
    }

    /// Returns the name of the ClusterExtension.
    #[must_use]
    pub fn extension(&self) -> String {
        format!("ce-{}", self.id)
    }

    /// Returns the install namespace.
    #[must_use]
    pub fn namespace(&self) -> String {
        format!("ns-{}", self.id)
    }

    /// Returns the name of the ClusterCatalog.
    #[must_use]
    pub fn catalog(&self) -> String {
        format!("catalog-{}", self.id)
    }

    /// Returns the version that must be installed now.
    #[must_use]
    pub fn installed(&self) -> Option<Version> {
        self.installed
    }

    /// Makes the change of a stage. Afterwards, [`Scenario::expectation`] returns the expectation of the stage. A catalog that an
    /// earlier stage deleted is created again first, except for an uninstallation.
    ///
    /// # Errors
    /// The API server refuses the change.
    pub async fn perform(&mut self, client: &Client, stage: Stage) -> Result<()> {
        user::perform(client, self, stage).await?;
        self.installed = stage.leads_to(self.installed);
        Ok(())
    }

    /// Returns the state that the current spec must lead to.
    #[must_use]
    pub fn expectation(&self) -> Expectation {
        expected::expectation(self)
    }

    /// Deletes the catalog, the namespace and the foreign objects.
    ///
    /// # Errors
    /// The API server refuses a deletion.
    pub async fn retire(&mut self, client: &Client) -> Result<()> {
        user::retire(client, self).await
    }
}
