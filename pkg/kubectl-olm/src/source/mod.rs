//! Sources of catalogs (directories, images, a catalogd, or the cluster's `ClusterCatalog`s), images of bundles, and the cluster: what a
//! command reads and writes outside of its process.
//!
//! Every catalog is read as a stream of metas, with one meta in memory at a time. Locally, only the cache of images is written. `write` and
//! `custom_resources` write to the cluster; all other modules only read it.

mod bearer;
mod bundle;
mod call;
mod catalog;
mod cluster;
mod custom_resources;
mod error;
mod folder;
mod image;
mod kinds;
mod listed;
mod live;
pub(crate) mod needs;
mod probe;
mod proxy;
mod query;
mod served;
mod spool;
#[cfg(test)]
pub(crate) mod stand_in;
mod tail;
mod tenant;
mod write;

use std::collections::BTreeSet;

use olm_resolve::{CatalogInput, CatalogLookup, Selector, near_names};
use olm_text::name::{CatalogName, PackageName};

pub(crate) use bearer::{Bearer, CatalogdAddress};
pub(crate) use bundle::{
    content as bundle_content, content_of_image as bundle_of_image, files as bundle_files,
    root_of_image as bundle_root_of_image,
};
pub(crate) use catalog::Catalog;
pub(crate) use cluster::Cluster;
pub(crate) use error::SourceError;
pub(crate) use image::cache_dir;
pub(crate) use kinds::Kinds;
pub(crate) use live::{last_seen, owner};
pub(crate) use needs::{Joining, Surroundings};
pub(crate) use probe::{LOG_BYTES, LOG_LINES};
pub(crate) use write::{Apply, DryRunError, FIELD_MANAGER};

use crate::cli::{AccessArgs, SourceArgs};
use crate::gates::Gates;

/// Catalogs that a command reads.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The catalogs, except those of the cluster with availability mode `Unavailable`.
    pub(crate) catalogs: Vec<Catalog>,
}

impl Sources {
    /// Finds the catalogs that `args` names.
    ///
    /// # Errors
    /// An image cannot be pulled, the list of `ClusterCatalog`s fails, or no catalog has a requested name.
    pub(crate) async fn open(args: &SourceArgs) -> Result<Self, SourceError> {
        if args.is_offline() {
            return Self::offline(args).await;
        }
        let cluster = Cluster::connect(&args.access).await;
        let cluster = cluster.map_err(SourceError::or_offline)?;
        Self::of_cluster(&cluster).await?.only(&args.only)
    }

    /// Variant of [`Sources::open`] for a cluster that is known already.
    ///
    /// # Errors
    /// As [`Sources::open`].
    pub(crate) async fn open_with(args: &SourceArgs, cluster: &Cluster) -> Result<Self, SourceError> {
        if args.is_offline() {
            return Self::offline(args).await;
        }
        Self::of_cluster(cluster).await?.only(&args.only)
    }

    /// Returns the catalogs of a cluster.
    ///
    /// # Errors
    /// The list of `ClusterCatalog`s fails.
    pub(crate) async fn of_cluster(cluster: &Cluster) -> Result<Self, SourceError> {
        Ok(Self {
            catalogs: cluster.catalogs().await?,
        })
    }

    async fn offline(args: &SourceArgs) -> Result<Self, SourceError> {
        let mut catalogs = Vec::new();
        for dir in &args.dir {
            catalogs.push(Catalog::folder(dir)?);
        }
        for reference in &args.image {
            catalogs.push(Catalog::image(reference, &args.access).await?);
        }
        for url in &args.catalogd {
            catalogs.push(Catalog::catalogd(url, &args.access).await?);
        }
        distinguish(&mut catalogs);
        Self { catalogs }.only(&args.only)
    }

    /// Opens catalogs that words name: URLs, directories or images.
    ///
    /// # Errors
    /// A word is none of them, or an image cannot be pulled.
    pub(crate) async fn of_words(words: &[String], access: &AccessArgs) -> Result<Self, SourceError> {
        let mut catalogs = Vec::new();
        for word in words {
            catalogs.push(Catalog::from_word(word, access).await?);
        }
        distinguish(&mut catalogs);
        Ok(Self { catalogs })
    }

    /// Keeps only the named catalogs; all if `names` is empty.
    ///
    /// # Errors
    /// No catalog has one of the names.
    pub(crate) fn only(mut self, names: &[CatalogName]) -> Result<Self, SourceError> {
        let present: Vec<CatalogName> = self.catalogs.iter().map(|catalog| catalog.name.clone()).collect();
        if let Some(missing) = names.iter().find(|name| !present.contains(name)) {
            return Err(SourceError::NoSuchCatalog {
                name: missing.clone(),
                present,
            });
        }
        if !names.is_empty() {
            self.catalogs.retain(|catalog| names.contains(&catalog.name));
        }
        Ok(self)
    }

    /// Looks up a package in each catalog that `selector` matches.
    pub(crate) async fn lookup(&self, package: &PackageName, selector: &Selector) -> Vec<CatalogInput> {
        let mut inputs = Vec::new();
        for catalog in self.catalogs.iter().filter(|c| selector.matches(&c.labels)) {
            inputs.push(CatalogInput {
                name: catalog.name.clone(),
                priority: catalog.priority,
                lookup: catalog.lookup(package).await,
            });
        }
        inputs
    }

    /// Returns similar names of packages in the selected catalogs, if none of `inputs` has `package`. Unreadable
    /// catalogs are skipped.
    pub(crate) async fn similar(
        &self,
        package: &PackageName,
        selector: &Selector,
        inputs: &[CatalogInput],
    ) -> Vec<String> {
        let mut names = BTreeSet::new();
        if !inputs
            .iter()
            .any(|input| matches!(input.lookup, CatalogLookup::Found(_)))
        {
            for catalog in self.catalogs.iter().filter(|c| selector.matches(&c.labels)) {
                names.extend(catalog.package_names().await.unwrap_or_default());
            }
        }
        let near = near_names(package, names.iter().map(PackageName::as_str));
        near.into_iter().map(ToOwned::to_owned).collect()
    }
}

/// Returns the feature gates by which operator-controller would resolve bundles of these catalogs: those of the cluster, or of the shipped
/// manifests for catalogs that are not of a cluster.
pub(crate) async fn gates_of(args: &SourceArgs) -> Gates {
    if args.is_offline() {
        return Gates::shipped();
    }
    match Cluster::connect(&args.access).await {
        Ok(cluster) => cluster.gates().await,
        Err(error) => Gates::assumed(olm_text::chain(&error)),
    }
}

/// Appends numbers to repeated names of catalogs.
fn distinguish(catalogs: &mut [Catalog]) {
    let mut names = BTreeSet::new();
    for catalog in catalogs {
        let mut name = catalog.name.clone();
        let mut number = 1;
        while !names.insert(name.clone()) {
            number += 1;
            name = format!("{}-{number}", catalog.name).into();
        }
        catalog.name = name;
    }
}
