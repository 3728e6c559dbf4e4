//! Access to images, as the controllers need it.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::error::Error;
use crate::puller::{Filter, Puller, Unpacked};
use crate::reference::{CanonicalRef, Reference};

/// Source of images. [`Puller`] asks registries; a test may have the images on disk.
pub trait Images: Send + Sync {
    /// Resolves a reference to a digest, as [`Puller::resolve`] does.
    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<CanonicalRef, Error>>;

    /// Returns the unpacked content of a reference for `owner`, as [`Puller::fetch_as`] does.
    fn fetch_as<'a>(
        &'a self,
        owner: &'a str,
        requested: &'a Reference,
        reference: &'a CanonicalRef,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Unpacked, Error>>;

    /// Removes all content of an owner, as [`Puller::forget`] does.
    fn forget<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Returns a warning for the status, as [`Puller::warning`] does.
    fn warning(&self) -> Option<&'static str>;
}

impl Images for Puller {
    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<CanonicalRef, Error>> {
        Self::resolve(self, reference).boxed()
    }

    fn fetch_as<'a>(
        &'a self,
        owner: &'a str,
        requested: &'a Reference,
        reference: &'a CanonicalRef,
        filter: Filter,
    ) -> BoxFuture<'a, Result<Unpacked, Error>> {
        Self::fetch_as(self, owner, requested, reference, filter).boxed()
    }

    fn forget<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Self::forget(self, owner).boxed()
    }

    fn warning(&self) -> Option<&'static str> {
        Self::warning(self)
    }
}
