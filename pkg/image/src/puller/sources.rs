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
    /// Tries every source with its schemes, in a slot of its registry; returns the last failure.
    ///
    /// `work` is boxed: the compiler cannot see that the future of a borrowing `AsyncFn` is `Send`.
    pub(super) async fn try_sources<'w, T>(
        &self,
        sources: &[Source],
        slot: SlotKind,
        work: impl Fn(Session) -> BoxFuture<'w, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let config = &self.config;
        let mut last = None;
        for source in sources {
            let repository = &source.repository;
            let _slot = match self.slots.take(slot, api_host(repository)).await {
                Ok(slot) => slot,
                Err(error) => {
                    tracing::debug!(%repository, %error, "source failed");
                    last = Some(error);
                    continue;
                }
            };
            let access = self.access().await.map_err(Failure::Final)?;
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
                    credentials: access.keychain.find(repository).cloned(),
                    trust: access.trust.clone(),
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
