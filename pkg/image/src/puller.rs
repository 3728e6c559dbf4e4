//! Resolves references and caches unpacked images, one per owner.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime},
};

use crate::{
    auth::Keychain,
    cache::{self, CachedImage, Marker, OwnerDir, ROOT},
    config::ImageConfig,
    error::Error,
    locks::Locks,
    policy::{self, Policy, Verdict},
    reference::{CanonicalRef, Reference, Repository, TagOrDigest},
    registries::{Registries, Source},
    registry::{Image, RegistryError, Scheme, Session, SessionOptions},
    slots::PullSlots,
    trust::Trust,
    unpack::{Budget, Unpacker},
};
use futures::{FutureExt as _, future::BoxFuture};

/// Part of an image to unpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The whole image.
    All,
    /// The directory that this label of the image names, with everything below it.
    LabelDir(&'static str),
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
    owners: Locks,
    slots: PullSlots,
}

/// Failure to pull an image from one source.
enum Failure {
    /// Another source may have the image.
    Source(RegistryError),
    /// The failure is the same for all sources.
    Final(Error),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::Source(error)
    }
}

/// Configuration files and credentials of a pull, read when it starts.
struct PullContext {
    sources: Vec<Source>,
    keychain: Keychain,
    trust: Arc<Trust>,
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

impl Puller {
    /// Creates a puller over a cache directory and removes leftovers of interrupted pulls.
    pub fn new(config: ImageConfig) -> Self {
        cache::remove_leftovers(&config.cache_dir, config.durable);
        Self {
            slots: PullSlots::new(config.pulls),
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
        let context = self.pull_context(reference.repository(), false).await?;
        let digest = self
            .try_sources(&context, |session| {
                async move { Ok(session.digest_of(tag).await?) }.boxed()
            })
            .await
            .map_err(|failure| match failure {
                Failure::Source(error) => self.with_secret_problem(error, |source| Error::Resolve {
                    reference: reference.clone(),
                    source,
                }),
                Failure::Final(error) => error,
            })?;
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
        let verdict = self.verdict(requested, reference).await?;
        let owner_dir = self.owner_dir(owner)?;
        let _lock = self.owners.lock(owner).await;
        let label = match filter {
            Filter::All => None,
            Filter::LabelDir(label) => Some(label),
        };
        let (for_lookup, digest) = (owner_dir.clone(), reference.digest().clone());
        let found = blocking(move || for_lookup.find(&digest, label)).await?;
        let verdict = verdict.as_ref();
        let verified = verdict.and_then(Verdict::required_fingerprint);
        let accepted = |cached: &CachedImage| verified.is_none() || cached.marker.policy == verified;
        let cached = match found.filter(accepted) {
            Some(cached) => cached,
            None => {
                self.pull(PullJob {
                    owner_dir: &owner_dir,
                    requested,
                    reference,
                    label,
                    verdict,
                })
                .await?
            }
        };
        let (for_cleanup, digest) = (owner_dir, reference.digest().clone());
        blocking(move || {
            for_cleanup.keep_only(&digest);
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

    /// Wraps the last source's error, with the problem of the pull secrets if credentials may be missing.
    fn with_secret_problem(
        &self,
        error: RegistryError,
        wrap: impl FnOnce(Box<RegistryError>) -> Error,
    ) -> Error {
        let denied = matches!(
            error,
            RegistryError::Unauthorized { .. } | RegistryError::Forbidden { .. }
        );
        let failed = wrap(Box::new(error));
        match self.config.pull_secrets.problems().filter(|_| denied) {
            Some(problem) => Error::PullSecrets {
                problem,
                failed: Box::new(failed),
            },
            None => failed,
        }
    }

    async fn pull(&self, job: PullJob<'_>) -> Result<CachedImage, Error> {
        let reference = job.reference;
        // A mirror that serves tags serves their content, too, although that is requested by digest.
        let context = self
            .pull_context(reference.repository(), job.requested.by_digest())
            .await?;
        let pulled = self
            .try_sources(&context, |session| self.pull_in_slot(session, job).boxed())
            .await;
        pulled.map_err(|failure| match failure {
            Failure::Source(error) => self.with_secret_problem(error, |source| Error::Pull {
                reference: reference.clone(),
                source,
            }),
            Failure::Final(error) => error,
        })
    }

    /// Waits for a slot, then pulls within the time limit.
    async fn pull_in_slot(&self, session: Session, job: PullJob<'_>) -> Result<CachedImage, Failure> {
        let _slot = self.slots.pull(session.host()).await?;
        let limit = self.config.limits.pull;
        let budget = Budget::until(Instant::now() + limit);
        // Stops work on other threads when this future is dropped.
        let _guard = budget.guard();
        let pull = self.pull_from(session, job, &budget);
        tokio::time::timeout(limit, pull).await.unwrap_or_else(|_| {
            Err(Failure::Final(Error::TooSlow {
                reference: job.reference.clone(),
                limit,
            }))
        })
    }

    async fn pull_from(
        &self,
        session: Session,
        job: PullJob<'_>,
        budget: &Budget,
    ) -> Result<CachedImage, Failure> {
        let PullJob {
            owner_dir,
            reference,
            label,
            verdict,
            ..
        } = job;
        let limits = &self.config.limits;
        let image = session.image(reference.digest()).await?;
        if let Some(verdict) = verdict.filter(|verdict| verdict.requires_signatures()) {
            verify_signatures(&session, verdict, reference, &image).await?;
        }
        let policy = verdict.map(Verdict::fingerprint);
        let filter = label
            .map(|label| directory(label, &image))
            .transpose()
            .map_err(Failure::Final)?;
        let for_temporary = owner_dir.clone();
        let temporary = blocking(move || for_temporary.temporary())
            .await
            .map_err(Failure::Final)?;
        let mut layers = Vec::new();
        let mut left = limits.total;
        for (index, layer) in image.layers.iter().enumerate() {
            let file = temporary.path().join(format!("layer-{index}"));
            session.download(layer, &file, limits.layer.min(left)).await?;
            left = left.saturating_sub(layer.size);
            layers.push((file, layer.size));
        }
        tracing::debug!(%reference, registry = session.host(), layers = layers.len(), "transferred");
        let (owner_dir, digest, budget, limits) = (
            owner_dir.clone(),
            reference.digest().clone(),
            budget.clone(),
            limits.clone(),
        );
        let slot = self.slots.unpack().await.map_err(Failure::Final)?;
        let unpack = move || {
            let _slot = slot;
            let content = temporary.path().join("content");
            let root = content.join(ROOT);
            fs::create_dir_all(&root).map_err(|source| Error::Cache {
                action: "write to",
                path: root.clone(),
                source,
            })?;
            let below = filter
                .as_ref()
                .map(|(_, parts)| parts.clone())
                .unwrap_or_default();
            let mut unpacker = Unpacker::new(root.clone(), below.clone(), limits, budget);
            for (layer, (path, size)) in layers.into_iter().enumerate() {
                let file = File::open(&path).map_err(|source| Error::Cache {
                    action: "read",
                    path: path.clone(),
                    source,
                })?;
                unpacker
                    .apply(file, size)
                    .map_err(|source| Error::Unpack { layer, source })?;
            }
            let filter = filter
                .map(|(label, parts)| {
                    let directory: PathBuf = parts.iter().collect();
                    let shown = directory.display().to_string();
                    // The directory itself must not be a link to another part of the image.
                    if real_directory(&root, &parts) {
                        Ok((label.to_owned(), shown))
                    } else {
                        Err(Error::LabelDirectory {
                            label,
                            directory: shown,
                        })
                    }
                })
                .transpose()?;
            owner_dir.publish(&content, &digest, Marker::new(image.labels, filter, policy))
        };
        blocking(unpack).await.map_err(Failure::Final)
    }

    /// Tries every source with its schemes; returns the last failure.
    ///
    /// `work` is boxed: the compiler cannot see that the future of a borrowing `AsyncFn` is `Send`.
    async fn try_sources<'w, T>(
        &self,
        context: &PullContext,
        work: impl Fn(Session) -> BoxFuture<'w, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let config = &self.config;
        let mut last = None;
        for source in &context.sources {
            let repository = &source.repository;
            let host = repository.domain();
            // A host that the administrator names is allowed wherever it is.
            let hosts = if source.listed || self.plain_http(host) {
                config.hosts.clone().allowing(host)
            } else {
                config.hosts.clone()
            };
            let hosts = Arc::new(hosts);
            for scheme in self.schemes(source) {
                let options = SessionOptions {
                    scheme: *scheme,
                    credentials: context.keychain.find(repository).cloned(),
                    trust: context.trust.clone(),
                    hosts: hosts.clone(),
                    token_hosts: &config.token_hosts,
                    limits: &config.limits,
                };
                let Some(session) = Session::new(repository, options) else {
                    last = Some(RegistryError::Client {
                        host: host.to_owned(),
                        cause: "its name is not valid in a URL".to_owned(),
                    });
                    continue;
                };
                match work(session).await {
                    Err(Failure::Source(error)) => {
                        tracing::debug!(%repository, ?scheme, %error, "source failed");
                        let next_scheme = error.unreachable();
                        // The failure over HTTPS is more informative than that of HTTP.
                        if *scheme != Scheme::Http || self.schemes(source).len() == 1 || !error.unreachable()
                        {
                            last = Some(error);
                        }
                        if !next_scheme {
                            break;
                        }
                    }
                    done => return done,
                }
            }
        }
        Err(match last {
            Some(error) => Failure::Source(error),
            None => Failure::Final(Error::Interrupted),
        })
    }

    fn schemes(&self, source: &Source) -> &'static [Scheme] {
        if self.plain_http(source.repository.domain()) {
            &[Scheme::Http]
        } else if source.insecure {
            &[Scheme::Unverified, Scheme::Http]
        } else {
            &[Scheme::Https]
        }
    }

    fn plain_http(&self, host: &str) -> bool {
        self.config.plain_http.iter().any(|plain| plain == host)
    }

    async fn pull_context(&self, repository: &Repository, by_digest: bool) -> Result<PullContext, Error> {
        let config = &self.config;
        let registries = Registries::read(config.registries_conf.as_ref())
            .await
            .map_err(Error::Registries)?;
        let found = registries.sources(repository, by_digest);
        if found.sources.is_empty() {
            let (registry, file) = found
                .blocked
                .unwrap_or_else(|| (repository.to_string(), "registries.conf".to_owned()));
            return Err(Error::Blocked { registry, file });
        }
        let keychain = Keychain::read(&config.pull_secrets, config.auth_file.as_deref())
            .await
            .map_err(Error::Auth)?;
        let (for_all, certs_d) = (config.ca_dir.clone(), config.certs_d.clone());
        let read = move || Trust::read(for_all.as_deref(), &certs_d).map_err(Error::Authorities);
        let trust = Arc::new(blocking(read).await?);
        Ok(PullContext {
            sources: found.sources,
            keychain,
            trust,
        })
    }
}

/// Verifies the signatures of the image that the policy requires: of its index or of its own manifest.
async fn verify_signatures(
    session: &Session,
    verdict: &Verdict,
    reference: &CanonicalRef,
    image: &Image,
) -> Result<(), Failure> {
    let mut digests = vec![reference.digest()];
    if image.digest != *reference.digest() {
        digests.push(&image.digest);
    }
    let mut signatures = Vec::new();
    for digest in &digests {
        signatures.extend(session.signatures(digest).await?);
    }
    let refused = |source| Error::Refused {
        reference: reference.clone(),
        source: Box::new(source),
    };
    verdict
        .check(&digests, &signatures)
        .map_err(|source| Failure::Final(refused(source)))
}

/// Returns the directory that a label of the image names.
fn directory(label: &'static str, image: &Image) -> Result<(&'static str, Vec<OsString>), Error> {
    let value = image.labels.get(label).ok_or(Error::MissingLabel { label })?;
    let parts = value.split('/').filter(|part| !part.is_empty() && *part != ".");
    if value.contains('\0') || parts.clone().any(|part| part == "..") {
        return Err(Error::LabelDirectory {
            label,
            directory: value.clone(),
        });
    }
    Ok((label, parts.map(OsString::from).collect()))
}

/// Returns true if these parts lead to a directory without following a link.
fn real_directory(root: &Path, parts: &[OsString]) -> bool {
    let mut path = root.to_owned();
    parts.iter().all(|part| {
        path.push(part);
        fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir())
    })
}

/// Runs file work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Interrupted)?
}
