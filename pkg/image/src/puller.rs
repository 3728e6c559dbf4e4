//! Resolves references and keeps unpacked images, one per owner.

use std::{collections::BTreeMap, path::PathBuf, time::SystemTime};

use crate::{
    config::ImageConfig,
    error::Error,
    reference::{CanonicalRef, Reference},
};

/// Which part of an image is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Everything.
    All,
    /// What lies at or below the directory that this label of the image names.
    LabelDir(&'static str),
}

/// An image on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// The content to read: the image's root, or with [`Filter::LabelDir`] the label's directory.
    /// Links below it never lead out of the image.
    pub root: PathBuf,
    /// The labels of the image's config.
    pub labels: BTreeMap<String, String>,
    /// What it is.
    pub reference: CanonicalRef,
    /// When it was unpacked; a cache hit keeps the time.
    pub unpacked_at: SystemTime,
}

/// Pulls images into a cache.
#[derive(Debug)]
pub struct Puller {
    pub(crate) config: ImageConfig,
}

impl Puller {
    /// A puller over a cache directory; what interrupted pulls left there is removed.
    pub fn new(config: ImageConfig) -> Self {
        Self { config }
    }

    /// The content a reference names now. Asks the registry only for tags.
    ///
    /// # Errors
    /// No source that registries.conf allows has the tag.
    pub async fn resolve(&self, reference: &Reference) -> Result<CanonicalRef, Error> {
        if let Some(canonical) = reference.canonical() {
            return Ok(canonical);
        }
        Err(Error::Interrupted)
    }

    /// The unpacked content of a reference, from the cache when it is there (no network). Any
    /// other content of this owner is removed afterwards.
    ///
    /// # Errors
    /// See [`Error`]; what was there before stays.
    pub async fn fetch(
        &self,
        owner: &str,
        _reference: &CanonicalRef,
        _filter: Filter,
    ) -> Result<Unpacked, Error> {
        Err(Error::Owner(owner.to_owned()))
    }

    /// Removes all content of an owner; none is fine.
    ///
    /// # Errors
    /// The cache directory cannot be changed.
    pub async fn forget(&self, owner: &str) -> Result<(), Error> {
        Err(Error::Owner(owner.to_owned()))
    }
}
