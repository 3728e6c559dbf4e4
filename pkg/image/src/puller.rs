//! Resolves references and caches unpacked images, one per owner.

mod sources;
mod transfer;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::SystemTime};

use crate::{
    cache::{self, CachedImage, OwnerDir},
    config::ImageConfig,
    error::Error,
    layers::Layers,
    policy::{self, Policy, Verdict},
    reference::{CanonicalRef, Reference, TagOrDigest},
    registry::{RegistryError, Session},
    slots::{PullSlots, SlotKind},
};
use futures::{FutureExt as _, future::BoxFuture};
use olm_runtime::locks::{LockGuard, Locks};

/// Part of an image to unpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The whole image.
    All,
    /// The directory that this label of the image names, with everything below it.
    LabelDir(&'static str),
}

impl Filter {
    fn label(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::LabelDir(label) => Some(label),
        }
    }
}

/// Content of an image on disk.
#[derive(Debug)]
pub enum Fetched {
    /// Layers that were transferred just now.
    Layers(Box<Layers>),
    /// Content of the cache.
    Unpacked(Unpacked),
}

/// Unpacked image on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// Directory to read: the image's root, or the label's directory with [`Filter::LabelDir`]. Links below it never
    /// lead out of the image.
    pub root: PathBuf,
    /// The labels of the image's config.
    pub labels: BTreeMap<String, String>,
    /// The image's reference by digest.
    pub reference: CanonicalRef,
    /// Time of unpacking; unchanged by a cache hit.
    pub unpacked_at: SystemTime,
    /// Fingerprint of the signature policy whose signatures were verified; `None` if it required none.
    pub verified: Option<String>,
}

/// Puller of images into a cache.
#[derive(Debug)]
pub struct Puller {
    config: ImageConfig,
    /// Locks that allow one pull at a time per owner.
    owners: Locks<String>,
    slots: Arc<PullSlots>,
}

/// Failure to pull an image from one source.
enum Failure {
    /// Another source may have the image, unless the disk failed during the transfer.
    Source(RegistryError),
    /// No other source is tried: the cause is the content, the signature policy, the configuration or the disk.
    Final(Error),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::Source(error)
    }
}

/// Parameters of a pull.
#[derive(Clone, Copy)]
struct PullJob<'a> {
    owner_dir: &'a OwnerDir,
    /// Reference that was resolved, which may be a tag.
    requested: &'a Reference,
    reference: &'a CanonicalRef,
    label: Option<&'static str>,
    verdict: Option<&'a Verdict>,
}

/// Turn of an owner to get an image. Its content is locked.
struct Turn<'a> {
    owner_dir: OwnerDir,
    requested: &'a Reference,
    reference: &'a CanonicalRef,
    label: Option<&'static str>,
    verdict: Option<Verdict>,
    lock: LockGuard<String>,
}

impl Turn<'_> {
    fn job(&self) -> PullJob<'_> {
        PullJob {
            owner_dir: &self.owner_dir,
            requested: self.requested,
            reference: self.reference,
            label: self.label,
            verdict: self.verdict.as_ref(),
        }
    }
}

impl PullJob<'_> {
    /// Returns the fingerprint of the policy if it requires signatures.
    fn verified(&self) -> Option<String> {
        self.verdict.and_then(Verdict::required_fingerprint)
    }
}

impl Puller {
    /// Creates a puller over a cache directory and removes leftovers of interrupted pulls.
    pub fn new(config: ImageConfig) -> Self {
        cache::remove_leftovers(&config.cache_dir, config.durable);
        Self {
            slots: Arc::new(PullSlots::new(config.pulls)),
            config,
            owners: Locks::default(),
        }
    }

    /// Resolves a reference to a digest. Asks the registry only for tags.
    ///
    /// # Errors
    /// No source that registries.conf allows has the tag.
    pub async fn resolve(&self, reference: &Reference) -> Result<CanonicalRef, Error> {
        let tag = match reference.version() {
            TagOrDigest::Digest(digest) => return Ok(reference.repository().at(digest.clone())),
            TagOrDigest::Tag(tag) => tag,
        };
        let sources = self.sources(reference.repository(), false).await?;
        let digest = self
            .try_sources(
                &sources,
                SlotKind::Resolve,
                |session| async move { Ok(session.digest_of(tag).await?) }.boxed(),
                |source| Error::Resolve {
                    reference: reference.clone(),
                    source,
                },
            )
            .await?;
        Ok(reference.repository().at(digest))
    }

    /// Returns the fingerprint that [`Unpacked::verified`] must have for the present signature policy; `None` if it
    /// requires no signatures. Reads the policy at each call, and asks no registry.
    ///
    /// # Errors
    /// The policy cannot be used, or rejects the image whatever its signatures.
    pub async fn judge(
        &self,
        requested: &Reference,
        reference: &CanonicalRef,
    ) -> Result<Option<String>, Error> {
        let verdict = self.verdict(requested, reference).await?;
        Ok(verdict.as_ref().and_then(Verdict::required_fingerprint))
    }

    /// Returns a warning for the status if no signature policy exists. Checks for the file at each call.
    pub fn warning(&self) -> Option<&'static str> {
        (!policy::exists(self.config.policy_file.as_deref()))
            .then_some("image signatures are not verified, as there is no policy.json")
    }

    /// Fetches a reference given by digest, see [`Puller::fetch_as`].
    ///
    /// # Errors
    /// As [`Puller::fetch_as`].
    pub async fn fetch(
        &self,
        owner: &str,
        reference: &CanonicalRef,
        filter: Filter,
    ) -> Result<Unpacked, Error> {
        self.fetch_as(owner, &reference.clone().into(), reference, filter)
            .await
    }

    /// Returns the unpacked content of a reference, from the cache without network access if possible. Then removes
    /// other content of this owner. The signature policy applies to the `requested` reference, which may be a tag, also
    /// for cached content.
    ///
    /// # Errors
    /// See [`Error`]; the former content stays.
    pub async fn fetch_as(
        &self,
        owner: &str,
        requested: &Reference,
        reference: &CanonicalRef,
        filter: Filter,
    ) -> Result<Unpacked, Error> {
        let turn = self.begin(owner, requested, reference, filter).await?;
        let job = turn.job();
        let cached = match self.find(job).await? {
            Some(cached) => cached,
            None => {
                self.pull(job, |session| self.pull_in_time(session, job).boxed())
                    .await?
            }
        };
        unpacked(turn.owner_dir.clone(), cached, reference, job.verified()).await
    }

    /// Returns the verified layers of a reference without unpacking them, or content that is unpacked in the cache. The rest is as in
    /// [`Puller::fetch_as`].
    ///
    /// # Errors
    /// See [`Error`]; the former content stays.
    pub async fn fetch_layers(
        &self,
        owner: &str,
        requested: &Reference,
        reference: &CanonicalRef,
        filter: Filter,
    ) -> Result<Fetched, Error> {
        let turn = self.begin(owner, requested, reference, filter).await?;
        let job = turn.job();
        if let Some(cached) = self.find(job).await? {
            let unpacked = unpacked(turn.owner_dir.clone(), cached, reference, job.verified()).await?;
            return Ok(Fetched::Unpacked(unpacked));
        }
        let transferred = self
            .pull(job, |session| self.transfer_in_time(session, job).boxed())
            .await?;
        let (verified, slots) = (job.verified(), self.slots.clone());
        let layers = Layers::new(transferred, reference.clone(), verified, slots, turn.lock);
        Ok(Fetched::Layers(Box::new(layers)))
    }

    /// Judges the reference and locks the content of its owner.
    async fn begin<'a>(
        &self,
        owner: &str,
        requested: &'a Reference,
        reference: &'a CanonicalRef,
        filter: Filter,
    ) -> Result<Turn<'a>, Error> {
        let verdict = self.verdict(requested, reference).await?;
        let owner_dir = self.owner_dir(owner)?;
        Ok(Turn {
            lock: self.owners.lock(owner).await,
            owner_dir,
            requested,
            reference,
            label: filter.label(),
            verdict,
        })
    }

    /// Returns the content in the cache, unless its signatures must be verified first.
    async fn find(&self, job: PullJob<'_>) -> Result<Option<CachedImage>, Error> {
        let (owner_dir, digest, label) = (job.owner_dir.clone(), job.reference.digest().clone(), job.label);
        let found = blocking(move || owner_dir.find(&digest, label)).await?;
        let verified = job.verified();
        Ok(found.filter(|cached| verified.is_none() || cached.marker.policy == verified))
    }

    /// Removes all content of an owner, if there is any.
    ///
    /// # Errors
    /// The cache directory cannot be changed.
    pub async fn forget(&self, owner: &str) -> Result<(), Error> {
        let owner_dir = self.owner_dir(owner)?;
        let _lock = self.owners.lock(owner).await;
        blocking(move || owner_dir.clear()).await
    }

    fn owner_dir(&self, owner: &str) -> Result<OwnerDir, Error> {
        OwnerDir::new(&self.config.cache_dir, owner, self.config.durable)
    }

    /// Returns the signature policy's verdict. A rejection that needs no signatures is an error.
    async fn verdict(
        &self,
        requested: &Reference,
        reference: &CanonicalRef,
    ) -> Result<Option<Verdict>, Error> {
        let policy = Policy::read(self.config.policy_file.as_deref())
            .await
            .map_err(Error::Policy)?;
        let verdict = policy.map(|policy| policy.verdict(requested));
        match verdict.as_ref().map_or(Ok(()), Verdict::reject_early) {
            Ok(()) => Ok(verdict),
            Err(source) => Err(Error::Refused {
                reference: reference.clone(),
                source: Box::new(source),
            }),
        }
    }

    /// Does `work` with the sources of an image, until one has it.
    async fn pull<'w, T>(
        &self,
        job: PullJob<'w>,
        work: impl Fn(Session) -> BoxFuture<'w, Result<T, Failure>>,
    ) -> Result<T, Error> {
        let reference = job.reference;
        // A mirror that serves tags serves their content, too, although that is requested by digest.
        let sources = self
            .sources(reference.repository(), job.requested.by_digest())
            .await?;
        self.try_sources(&sources, SlotKind::Pull, work, |source| Error::Pull {
            reference: reference.clone(),
            source,
        })
        .await
    }
}

/// Removes other content of the owner; returns the content of the cache.
pub(crate) async fn unpacked(
    owner_dir: OwnerDir,
    cached: CachedImage,
    reference: &CanonicalRef,
    verified: Option<String>,
) -> Result<Unpacked, Error> {
    let digest = reference.digest().clone();
    blocking(move || {
        owner_dir.keep_only(&digest);
        Ok(())
    })
    .await?;
    let root = match &cached.marker.filter {
        None => cached.root,
        Some((_, directory)) => cached.root.join(directory),
    };
    Ok(Unpacked {
        root,
        labels: cached.marker.labels,
        reference: reference.clone(),
        unpacked_at: cached.unpacked_at,
        verified,
    })
}

/// Runs file work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Interrupted)?
}
