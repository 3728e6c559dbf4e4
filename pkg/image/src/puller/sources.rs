//! Sources of an image, tried one after the other.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Failure, Puller, blocking};
use crate::{
    auth::Keychain,
    error::Error,
    reference::Repository,
    registries::{Registries, Source},
    registry::{RegistryError, Scheme, Session, SessionOptions, api_host},
    slots::SlotKind,
    trust::Trust,
};

/// Credentials and authorities, read by each attempt that has a slot: an attempt that waits holds neither.
struct Access {
    keychain: Keychain,
    trust: Arc<Trust>,
}

impl Puller {
    /// Tries every source with its schemes, in a slot of its registry. If all fail, the error names each failure; `wrap` says what
    /// was attempted.
    ///
    /// `work` is boxed: the compiler cannot see that the future of a borrowing `AsyncFn` is `Send`.
    pub(super) async fn try_sources<'w, T>(
        &self,
        sources: &[Source],
        slot: SlotKind,
        work: impl Fn(Session) -> BoxFuture<'w, Result<T, Failure>>,
        wrap: impl FnOnce(Box<RegistryError>) -> Error,
    ) -> Result<T, Error> {
        let config = &self.config;
        let mut failures = Vec::new();
        for source in sources {
            let repository = &source.repository;
            let _slot = match self.slots.take(slot, api_host(repository)).await {
                Ok(slot) => slot,
                Err(error) => {
                    tracing::debug!(%repository, %error, "source failed");
                    failures.push(error);
                    continue;
                }
            };
            let access = self.access().await?;
            let host = repository.domain();
            // A host that the administrator names is allowed wherever it is.
            let hosts = if source.listed || self.plain_http(host) {
                config.hosts.clone().allowing(host)
            } else {
                config.hosts.clone()
            };
            let hosts = Arc::new(hosts);
            let mut failed = None;
            for scheme in self.schemes(source) {
                let options = SessionOptions {
                    scheme: *scheme,
                    credentials: access.keychain.find(repository).cloned(),
                    trust: access.trust.clone(),
                    hosts: hosts.clone(),
                    token_hosts: &config.token_hosts,
                    limits: &config.limits,
                };
                let Some(session) = Session::new(repository, options) else {
                    failed = Some(RegistryError::Client {
                        host: host.to_owned(),
                        cause: "its name is not valid in a URL".to_owned(),
                    });
                    continue;
                };
                match work(session).await {
                    Ok(done) => return Ok(done),
                    Err(Failure::Final(error)) => return Err(error),
                    Err(Failure::Source(error)) if error.of_disk() => return Err(wrap(Box::new(error))),
                    Err(Failure::Source(error)) => {
                        tracing::debug!(%repository, ?scheme, %error, "source failed");
                        let next_scheme = error.unreachable();
                        // The failure over HTTPS is more informative than that of HTTP.
                        if *scheme != Scheme::Http || self.schemes(source).len() == 1 || !error.unreachable()
                        {
                            failed = Some(error);
                        }
                        if !next_scheme {
                            break;
                        }
                    }
                }
            }
            failures.extend(failed);
        }
        Err(self.failed(failures, wrap))
    }

    /// Returns the error of a reference whose sources failed, with the problem of the pull secrets if credentials may be missing.
    fn failed(
        &self,
        mut failures: Vec<RegistryError>,
        wrap: impl FnOnce(Box<RegistryError>) -> Error,
    ) -> Error {
        let denied = failures.iter().position(RegistryError::denied);
        // The user can mend a denial. Without one, the origin counts, which is the last source.
        let Some(decisive) = denied.or(failures.len().checked_sub(1)) else {
            return Error::Interrupted;
        };
        let mut error = wrap(Box::new(failures.remove(decisive)));
        if !failures.is_empty() {
            error = Error::Sources {
                failed: Box::new(error),
                others: failures,
            };
        }
        match self.config.pull_secrets.problems().filter(|_| denied.is_some()) {
            Some(problem) => Error::PullSecrets {
                problem,
                failed: Box::new(error),
            },
            None => error,
        }
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

    /// Returns the sources of a repository, by registries.conf as it is now.
    pub(super) async fn sources(
        &self,
        repository: &Repository,
        by_digest: bool,
    ) -> Result<Vec<Source>, Error> {
        let registries = Registries::read(self.config.registries_conf.as_ref())
            .await
            .map_err(Error::Registries)?;
        let found = registries.sources(repository, by_digest);
        if found.sources.is_empty() {
            let (registry, file) = found
                .blocked
                .unwrap_or_else(|| (repository.to_string(), "registries.conf".to_owned()));
            return Err(Error::Blocked { registry, file });
        }
        Ok(found.sources)
    }

    async fn access(&self) -> Result<Access, Error> {
        let config = &self.config;
        let keychain = Keychain::read(&config.pull_secrets, config.auth_file.as_deref())
            .await
            .map_err(Error::Auth)?;
        let (for_all, certs_d) = (config.ca_dir.clone(), config.certs_d.clone());
        let read = move || Trust::read(for_all.as_deref(), &certs_d).map_err(Error::Authorities);
        let trust = Arc::new(blocking(read).await?);
        Ok(Access { keychain, trust })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::FutureExt as _;
    use parking_lot::Mutex;

    use super::*;
    use crate::{cause::Cause, config::ImageConfig, reference::Reference};

    fn puller(folder: &Path) -> Puller {
        let mut config = ImageConfig::new(folder.join("cache"));
        config.auth_file = Some(folder.join("none.json"));
        config.certs_d = Vec::new();
        Puller::new(config)
    }

    /// Tries sources that fail one after the other; returns the error and the number of attempts.
    async fn attempt(puller: &Puller, failures: Vec<RegistryError>) -> (Error, usize) {
        let source = Source {
            repository: "quay.io/a/b:v1"
                .parse::<Reference>()
                .unwrap()
                .repository()
                .clone(),
            insecure: false,
            listed: false,
        };
        let sources = vec![source; failures.len()];
        let attempts = AtomicUsize::new(0);
        let failures = Mutex::new(failures.into_iter());
        let work = |_| {
            attempts.fetch_add(1, Ordering::Relaxed);
            let failure = failures.lock().next().unwrap();
            async move { Err::<(), _>(Failure::Source(failure)) }.boxed()
        };
        let wrap = |source| Error::Resolve {
            reference: "quay.io/a/b:v1".parse().unwrap(),
            source,
        };
        let done = puller.try_sources(&sources, SlotKind::Resolve, work, wrap).await;
        (done.unwrap_err(), attempts.load(Ordering::Relaxed))
    }

    fn dns(host: &str) -> RegistryError {
        RegistryError::Dns {
            host: host.to_owned(),
        }
    }

    #[tokio::test]
    async fn the_denial_of_a_mirror_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let puller = puller(folder.path());
        let denial = |offered| RegistryError::Unauthorized {
            host: "mirror.example".to_owned(),
            what: "manifest v1".to_owned(),
            offered,
        };
        let expected = "error getting manifest: image quay.io/a/b:v1 cannot be resolved: registry mirror.example asks for \
                        credentials (manifest v1): the pull secrets have none for it; 1 other source failed: the name of \
                        registry quay.io cannot be resolved; check the reference and DNS";
        let (error, _) = attempt(&puller, vec![denial(false), dns("quay.io")]).await;
        assert_eq!(error.message(), expected);
        assert_eq!(error.cause(), Cause::Unauthorized);
        assert!(!error.terminal());

        puller
            .config
            .pull_secrets
            .set_problems(vec!["pull secret x is missing".to_owned()]);
        let (error, _) = attempt(&puller, vec![denial(false), dns("quay.io")]).await;
        assert_eq!(error.message(), format!("{expected}; pull secret x is missing"));
        let (error, _) = attempt(&puller, vec![dns("quay.io")]).await;
        assert_eq!(
            error.message(),
            "error getting manifest: image quay.io/a/b:v1 cannot be resolved: the name of registry quay.io cannot be resolved; \
             check the reference and DNS"
        );
    }

    #[tokio::test]
    async fn many_failures_make_a_short_message() {
        let folder = tempfile::tempdir().unwrap();
        let long = "a".repeat(10_000);
        let failures = (0..100).map(|_| dns(&long)).chain([dns("quay.io")]).collect();
        let (error, attempts) = attempt(&puller(folder.path()), failures).await;
        assert_eq!(attempts, 101);
        let message = error.message();
        assert!(
            message.contains("registry quay.io") && message.contains("100 other sources failed"),
            "{message}"
        );
        assert!(message.len() < 2048, "{}", message.len());
    }

    #[tokio::test]
    async fn no_other_source_is_tried_if_the_disk_fails() {
        let folder = tempfile::tempdir().unwrap();
        let full = RegistryError::disk(
            "mirror.example",
            "layer 1",
            std::io::ErrorKind::StorageFull.into(),
        );
        let (error, attempts) = attempt(&puller(folder.path()), vec![full, dns("quay.io")]).await;
        assert_eq!((error.cause(), attempts), (Cause::Disk, 1));
    }
}
