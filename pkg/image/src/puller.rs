//! Resolves references and keeps unpacked images, one per owner.

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
    cache::{self, Cached, Marker, ROOT, Shelf},
    config::ImageConfig,
    error::Error,
    locks::Locks,
    policy::{self, Policy, Verdict},
    reference::{CanonicalRef, Reference, Repository, TagOrDigest},
    registries::{Registries, Source},
    registry::{Image, RegistryError, Scheme, Session, SessionOptions},
    trust::Trust,
    turns::Turns,
    unpack::{Budget, Unpacker},
};
use futures::{FutureExt as _, future::BoxFuture};

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
    config: ImageConfig,
    /// One pull at a time for an owner.
    owners: Locks,
    turns: Turns,
}

/// Why one source did not give an image.
enum Failure {
    /// Another source may.
    Source(RegistryError),
    /// No other source will.
    Final(Error),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::Source(error)
    }
}

/// Everything a pull reads from its surroundings, read when it starts.
struct Surroundings {
    sources: Vec<Source>,
    keychain: Keychain,
    trust: Arc<Trust>,
}

/// What is to be pulled.
#[derive(Clone, Copy)]
struct Order<'a> {
    place: &'a Shelf,
    reference: &'a CanonicalRef,
    label: Option<&'static str>,
    verdict: Option<&'a Verdict>,
}

impl Puller {
    /// A puller over a cache directory; what interrupted pulls left there is removed.
    pub fn new(config: ImageConfig) -> Self {
        cache::sweep(&config.cache_dir, config.durable);
        Self {
            turns: Turns::new(config.pulls),
            config,
            owners: Locks::default(),
        }
    }

    /// The content a reference names now. Asks the registry only for tags.
    ///
    /// # Errors
    /// No source that registries.conf allows has the tag.
    pub async fn resolve(&self, reference: &Reference) -> Result<CanonicalRef, Error> {
        let tag = match reference.version() {
            TagOrDigest::Digest(digest) => return Ok(reference.repository().at(digest.clone())),
            TagOrDigest::Tag(tag) => tag,
        };
        let given = self.surroundings(reference.repository(), false).await?;
        let digest = self
            .first_source(&given, |session| {
                async move { Ok(session.digest_of(tag).await?) }.boxed()
            })
            .await
            .map_err(|failure| match failure {
                Failure::Source(error) => self.explained(error, |source| Error::Resolve {
                    reference: reference.clone(),
                    source,
                }),
                Failure::Final(error) => error,
            })?;
        Ok(reference.repository().at(digest))
    }

    /// Says for the status that signatures are not verified, when there is no policy that could ask for it.
    /// Looks whether the file is there.
    pub fn warning(&self) -> Option<&'static str> {
        (!policy::is_there(self.config.policy_file.as_deref()))
            .then_some("image signatures are not verified, as there is no policy.json")
    }

    /// [`Puller::fetch_as`] for a reference that was given by digest.
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

    /// The unpacked content of a reference, from the cache when it is there (no network). Any
    /// other content of this owner is removed afterwards. The signature policy decides by what was
    /// `requested`, which may be a tag, and counts for cached content, too.
    ///
    /// # Errors
    /// See [`Error`]; what was there before stays.
    pub async fn fetch_as(
        &self,
        owner: &str,
        requested: &Reference,
        reference: &CanonicalRef,
        filter: Filter,
    ) -> Result<Unpacked, Error> {
        let verdict = self.verdict(requested, reference).await?;
        let place = self.shelf(owner)?;
        let _alone = self.owners.lock(owner).await;
        let label = match filter {
            Filter::All => None,
            Filter::LabelDir(label) => Some(label),
        };
        let (looking, digest) = (place.clone(), reference.digest().clone());
        let found = blocking(move || looking.find(&digest, label)).await?;
        let verdict = verdict.as_ref();
        let accepted = |cached: &Cached| match verdict.filter(|verdict| verdict.wants_signatures()) {
            Some(verdict) => cached.marker.policy == Some(verdict.fingerprint()),
            None => true,
        };
        let cached = match found.filter(accepted) {
            Some(cached) => cached,
            None => {
                self.pull(Order {
                    place: &place,
                    reference,
                    label,
                    verdict,
                })
                .await?
            }
        };
        let (keeping, digest) = (place, reference.digest().clone());
        blocking(move || {
            keeping.keep_only(&digest);
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
        })
    }

    /// Removes all content of an owner; none is fine.
    ///
    /// # Errors
    /// The cache directory cannot be changed.
    pub async fn forget(&self, owner: &str) -> Result<(), Error> {
        let place = self.shelf(owner)?;
        let _alone = self.owners.lock(owner).await;
        blocking(move || place.clear()).await
    }

    fn shelf(&self, owner: &str) -> Result<Shelf, Error> {
        Shelf::of(&self.config.cache_dir, owner, self.config.durable)
    }

    /// What the signature policy says; a refusal that needs no look at signatures is an error.
    async fn verdict(
        &self,
        requested: &Reference,
        reference: &CanonicalRef,
    ) -> Result<Option<Verdict>, Error> {
        let policy = Policy::read(self.config.policy_file.as_deref())
            .await
            .map_err(Error::Policy)?;
        let verdict = policy.map(|policy| policy.verdict(requested));
        match verdict.as_ref().map_or(Ok(()), Verdict::before) {
            Ok(()) => Ok(verdict),
            Err(source) => Err(Error::Refused {
                reference: reference.clone(),
                source: Box::new(source),
            }),
        }
    }

    /// The error for what the last source answered, with the trouble of the pull secrets where they
    /// may be what is missing.
    fn explained(&self, error: RegistryError, wrap: impl FnOnce(Box<RegistryError>) -> Error) -> Error {
        let denied = matches!(
            error,
            RegistryError::Unauthorized { .. } | RegistryError::Forbidden { .. }
        );
        let failed = wrap(Box::new(error));
        match self.config.pull_secrets.trouble().filter(|_| denied) {
            Some(trouble) => Error::PullSecrets {
                trouble,
                failed: Box::new(failed),
            },
            None => failed,
        }
    }

    async fn pull(&self, order: Order<'_>) -> Result<Cached, Error> {
        let reference = order.reference;
        let given = self.surroundings(reference.repository(), true).await?;
        let pulled = self
            .first_source(&given, |session| self.pull_in_turn(session, order).boxed())
            .await;
        pulled.map_err(|failure| match failure {
            Failure::Source(error) => self.explained(error, |source| Error::Pull {
                reference: reference.clone(),
                source,
            }),
            Failure::Final(error) => error,
        })
    }

    /// Waits for a turn, then pulls within the limit of time.
    async fn pull_in_turn(&self, session: Session, order: Order<'_>) -> Result<Cached, Failure> {
        let _turn = self.turns.pull(session.host()).await?;
        let limit = self.config.limits.pull;
        let budget = Budget::until(Instant::now() + limit);
        // Ends the work on other threads when this future is dropped.
        let _guard = budget.guard();
        let pull = self.pull_from(session, order, &budget);
        tokio::time::timeout(limit, pull).await.unwrap_or_else(|_| {
            Err(Failure::Final(Error::TooSlow {
                reference: order.reference.clone(),
                limit,
            }))
        })
    }

    async fn pull_from(
        &self,
        session: Session,
        order: Order<'_>,
        budget: &Budget,
    ) -> Result<Cached, Failure> {
        let Order {
            place,
            reference,
            label,
            verdict,
        } = order;
        let limits = &self.config.limits;
        let image = session.image(reference.digest()).await?;
        if let Some(verdict) = verdict.filter(|verdict| verdict.wants_signatures()) {
            accept(&session, verdict, reference, &image).await?;
        }
        let policy = verdict.map(Verdict::fingerprint);
        let filter = label
            .map(|label| directory(label, &image))
            .transpose()
            .map_err(Failure::Final)?;
        let placing = place.clone();
        let temporary = blocking(move || placing.temporary())
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
        let (place, digest, budget, limits) = (
            place.clone(),
            reference.digest().clone(),
            budget.clone(),
            limits.clone(),
        );
        let turn = self.turns.unpack().await.map_err(Failure::Final)?;
        let unpack = move || {
            let _turn = turn;
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
                    // The directory itself must not be a link to elsewhere in the image.
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
            place.publish(
                &content,
                &digest,
                &Marker {
                    labels: image.labels,
                    filter,
                    policy,
                },
            )
        };
        blocking(unpack).await.map_err(Failure::Final)
    }

    /// Tries every source, in the schemes it allows; the last one's failure is reported.
    ///
    /// `work` is boxed: the compiler cannot see that the future of a borrowing `AsyncFn` may move between threads.
    async fn first_source<'w, T>(
        &self,
        given: &Surroundings,
        work: impl Fn(Session) -> BoxFuture<'w, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let config = &self.config;
        let mut last = None;
        for source in &given.sources {
            let repository = &source.repository;
            let host = repository.domain();
            // What the administrator names is meant, wherever it is.
            let hosts = if source.named || self.plain_http(host) {
                config.hosts.clone().allowing(host)
            } else {
                config.hosts.clone()
            };
            let hosts = Arc::new(hosts);
            for scheme in self.schemes(source) {
                let options = SessionOptions {
                    scheme: *scheme,
                    credentials: given.keychain.find(repository).cloned(),
                    trust: given.trust.clone(),
                    hosts: hosts.clone(),
                    token_hosts: &config.token_hosts,
                    limits: &config.limits,
                };
                let Some(session) = Session::new(repository, options) else {
                    last = Some(RegistryError::Client {
                        host: host.to_owned(),
                        cause: "its name makes no URL".to_owned(),
                    });
                    continue;
                };
                match work(session).await {
                    Err(Failure::Source(error)) => {
                        tracing::debug!(%repository, ?scheme, %error, "source failed");
                        let next_scheme = error.unreachable();
                        // What HTTPS said is the better report than that HTTP is refused too.
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

    async fn surroundings(&self, repository: &Repository, by_digest: bool) -> Result<Surroundings, Error> {
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
        Ok(Surroundings {
            sources: found.sources,
            keychain,
            trust,
        })
    }
}

/// Verifies that the image is signed as the policy requires: its index, or its own manifest.
async fn accept(
    session: &Session,
    verdict: &Verdict,
    reference: &CanonicalRef,
    image: &Image,
) -> Result<(), Failure> {
    let mut digests = vec![reference.digest()];
    if image.digest != *reference.digest() {
        digests.push(&image.digest);
    }
    let mut attached = Vec::new();
    for digest in &digests {
        attached.extend(session.attached(digest).await?);
    }
    let refused = |source| Error::Refused {
        reference: reference.clone(),
        source: Box::new(source),
    };
    verdict
        .check(&digests, &attached)
        .map_err(|source| Failure::Final(refused(source)))
}

/// The directory that a label of the image names.
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

/// Whether these parts lead to a directory without following a link.
fn real_directory(root: &Path, parts: &[OsString]) -> bool {
    let mut path = root.to_owned();
    parts.iter().all(|part| {
        path.push(part);
        fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir())
    })
}

/// Runs file work off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Interrupted)?
}
