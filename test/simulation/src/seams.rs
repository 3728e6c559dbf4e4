//! Stand-ins for catalogd and registries: implementations of the controllers' traits `Catalogs` and `Images`. Their content is in
//! memory and on disk; every question waits for the scheduler, like a call to the API server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use olm_catalog_client::{CatalogRef, Catalogs, ClientError, PackageAnswer, StaleReason};
use olm_image::{CanonicalRef, Error, Filter, Images, Reference, Unpacked};
use olm_text::name::{CatalogName, PackageName};

use crate::content::{Content, FULL, OLD};
use crate::net::{CATALOG, IMAGE, Net, Reply};

/// Catalogs and images of a process.
#[derive(Clone)]
pub(crate) struct Outside {
    /// Network of the run; without it, every question is answered at once.
    pub(crate) net: Option<Arc<Net>>,
    pub(crate) process: u32,
    pub(crate) content: Arc<Content>,
}

impl Outside {
    /// Waits until the scheduler answers the question.
    async fn ask(&self, method: &str, path: &str) -> Reply {
        match &self.net {
            Some(net) => net.ask_about(self.process, method, path).await,
            None => Reply::Content,
        }
    }

    /// Asks a catalog. Returns the digest of the content that answers, and true if the answer is marked as former content.
    async fn generation(&self, catalog: &CatalogRef, what: &str) -> Result<(String, bool), ClientError> {
        let path = format!("/{}/{what}", catalog.name);
        match self.ask(CATALOG, &path).await {
            Reply::Content if self.content.generations.contains_key(&catalog.digest) => {
                Ok((catalog.digest.clone(), false))
            }
            Reply::Content => Err(ClientError::NoContent {
                catalog: catalog.name.clone(),
            }),
            // Content older than the status of the catalog says.
            Reply::Former if catalog.digest == FULL => Ok((OLD.to_owned(), true)),
            Reply::Unmarked => Ok((OLD.to_owned(), false)),
            _ => Err(ClientError::Timeout {
                catalog: catalog.name.clone(),
            }),
        }
    }
}

impl Catalogs for Outside {
    fn package<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        package: &'a PackageName,
    ) -> BoxFuture<'a, Result<PackageAnswer, ClientError>> {
        async move {
            let (digest, former) = self.generation(catalog, package.as_str()).await?;
            let packages = self.content.generations.get(&digest);
            let content = packages.and_then(|packages| packages.get(package.as_str()).cloned());
            Ok(PackageAnswer {
                content,
                former: former.then(|| StaleReason {
                    since: SystemTime::UNIX_EPOCH,
                    why: "catalogd did not answer in time".to_owned(),
                }),
            })
        }
        .boxed()
    }

    fn package_names<'a>(
        &'a self,
        catalog: &'a CatalogRef,
    ) -> BoxFuture<'a, Result<Arc<[PackageName]>, ClientError>> {
        async move {
            let (digest, _) = self.generation(catalog, "names").await?;
            let packages = self.content.generations.get(&digest).into_iter().flatten();
            Ok(packages
                .map(|(name, _)| PackageName::from(name.as_str()))
                .collect())
        }
        .boxed()
    }

    fn providers<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        _api: [&'a str; 3],
    ) -> BoxFuture<'a, Result<Vec<PackageName>, ClientError>> {
        async move { self.generation(catalog, "providers").await.map(|_| Vec::new()) }.boxed()
    }

    fn forget(&self, _catalog: &CatalogName) {}
}

impl Images for Outside {
    fn resolve<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<CanonicalRef, Error>> {
        // Every image of the small world is named by its digest.
        async move {
            reference
                .canonical()
                .ok_or_else(|| Error::Owner(reference.to_string()))
        }
        .boxed()
    }

    fn fetch_as<'a>(
        &'a self,
        _owner: &'a str,
        _requested: &'a Reference,
        reference: &'a CanonicalRef,
        _filter: Filter,
    ) -> BoxFuture<'a, Result<Unpacked, Error>> {
        async move {
            let late = || Error::TooSlow {
                reference: reference.clone(),
                limit: Duration::from_mins(1),
            };
            let image = reference.to_string();
            let root = match self.ask(IMAGE, &format!("/{image}")).await {
                Reply::Content => self.content.bundle(&image).ok_or_else(late)?,
                _ => return Err(late()),
            };
            Ok(Unpacked {
                root: root.to_owned(),
                labels: [(olm_bundle::FORMAT_LABEL.to_owned(), "registry+v1".to_owned())].into(),
                reference: reference.clone(),
                unpacked_at: SystemTime::UNIX_EPOCH,
                verified: None,
            })
        }
        .boxed()
    }

    fn forget<'a>(&'a self, _owner: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }

    fn warning(&self) -> Option<&'static str> {
        None
    }
}
