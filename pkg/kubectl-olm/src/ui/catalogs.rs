//! Contents of the catalogs, kept while the cluster serves them.
//!
//! All readers share the contents. Each read asks first, with the reader's own token, which catalogs there are and if the reader may read
//! their contents.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::join_all;
use olm_text::name::CatalogName;
use olm_ui::{CatalogView, IconFile, icon_name};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Reader;
use crate::failure::Failure;
use crate::source::{Catalog, SourceError};

/// Time for which the failure of a read answers for the next ones.
const RETRY: Duration = Duration::from_secs(10);

/// Content of a catalog of one digest.
struct Kept {
    digest: String,
    view: OnceLock<Arc<CatalogView>>,
    /// Turn of the reader who reads the content; time and message of the last failure.
    turn: tokio::sync::Mutex<Option<(Instant, String)>>,
}

/// Contents that were read. Each is read once for its digest, by one reader at a time. Reads of different catalogs do not wait for each
/// other.
#[derive(Default)]
pub(super) struct Catalogs {
    kept: Mutex<BTreeMap<CatalogName, Arc<Kept>>>,
}

/// The catalogs of a cluster, and a sentence about each one that cannot be read.
pub(super) struct Contents {
    views: Vec<Arc<CatalogView>>,
    pub(super) remarks: Vec<String>,
}

impl Contents {
    /// Returns the catalogs by name.
    pub(super) fn views(&self) -> impl Iterator<Item = &CatalogView> {
        self.views.iter().map(AsRef::as_ref)
    }
}

impl Catalogs {
    /// Returns the contents that the cluster serves now and the reader may read.
    ///
    /// # Errors
    /// The catalogs cannot be listed.
    pub(super) async fn read(&self, reader: &Reader) -> Result<Contents, Failure> {
        // A catalog whose content the reader must not read is closed: it has no digest, and cannot be read.
        let catalogs = reader.cluster.catalogs().await?;
        self.kept
            .lock()
            .retain(|name, _| catalogs.iter().any(|catalog| catalog.name == *name));
        let reads: Vec<_> = catalogs.iter().map(|catalog| self.view(catalog)).collect();
        let mut contents = Contents {
            views: Vec::new(),
            remarks: Vec::new(),
        };
        for (catalog, read) in catalogs.iter().zip(join_all(reads).await) {
            match read {
                Ok(view) => contents.views.push(view),
                Err(message) => contents
                    .remarks
                    .push(format!("Catalog {}: {message}", catalog.name)),
            }
        }
        contents.views.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(contents)
    }

    /// Returns the icon with a file name, if a content that the reader may read has it. Pages with many icons ask the cluster for little.
    pub(super) async fn icon(&self, reader: &Reader, name: &str) -> Option<IconFile> {
        let views: Vec<Arc<CatalogView>> = {
            let kept = self.kept.lock();
            kept.values().filter_map(|one| one.view.get().cloned()).collect()
        };
        for view in views {
            let mut icons = view.packages().iter().filter_map(|package| package.icon.as_ref());
            if let Some(icon) = icons.find(|icon| icon_name(icon) == name)
                && may_read(reader, view.name()).await
            {
                return Some(IconFile::new(icon));
            }
        }
        None
    }

    /// Returns the content of a catalog, or the message of the failure.
    async fn view(&self, catalog: &Catalog) -> Result<Arc<CatalogView>, String> {
        let load = async {
            let packages = catalog.profiles().await?;
            Ok::<_, SourceError>(Arc::new(CatalogView::new(catalog.name.clone(), packages)))
        };
        match catalog.digest() {
            Some(digest) => self.kept(&catalog.name, digest).view(load).await,
            None => load.await.map_err(message),
        }
    }

    /// Returns the entry of a catalog; a new one if its content changed.
    fn kept(&self, catalog: &CatalogName, digest: &str) -> Arc<Kept> {
        let mut all = self.kept.lock();
        let known = all.get(catalog).filter(|kept| kept.digest == digest);
        if let Some(known) = known {
            return known.clone();
        }
        let kept = Arc::new(Kept {
            digest: digest.to_owned(),
            view: OnceLock::new(),
            turn: tokio::sync::Mutex::default(),
        });
        all.insert(catalog.clone(), kept.clone());
        kept
    }
}

impl Kept {
    /// Returns the content. `load` reads it, unless another reader did so before, or failed a short time ago.
    async fn view(
        &self,
        load: impl Future<Output = Result<Arc<CatalogView>, SourceError>>,
    ) -> Result<Arc<CatalogView>, String> {
        if let Some(view) = self.view.get() {
            return Ok(view.clone());
        }
        let mut failed = self.turn.lock().await;
        if let Some(view) = self.view.get() {
            return Ok(view.clone());
        }
        if let Some((since, message)) = &*failed
            && since.elapsed() < RETRY
        {
            return Err(message.clone());
        }
        match load.await {
            Ok(view) => Ok(self.view.get_or_init(|| view).clone()),
            // The next reader may have other rights.
            Err(error) if error.is_denied() => Err(message(error)),
            Err(error) => {
                let message = message(error);
                *failed = Some((Instant::now(), message.clone()));
                Err(message)
            }
        }
    }
}

fn message(error: SourceError) -> String {
    Failure::from(error).message()
}

async fn may_read(reader: &Reader, catalog: &CatalogName) -> bool {
    match &reader.bearer {
        // Only the user of this machine reads here.
        None => true,
        Some(bearer) => bearer.may_read(catalog).await.unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn down() -> SourceError {
        SourceError::Http {
            url: "https://catalogd".to_owned(),
            cause: "timed out".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn readers_share_a_failure_for_a_while() {
        let catalogs = Catalogs::default();
        let kept = catalogs.kept(&"a".into(), "sha256:1");
        let reads = AtomicUsize::new(0);
        let fail = async || {
            reads.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(RETRY / 2).await;
            Err(down())
        };
        let started = Instant::now();
        let failed = join_all([kept.view(fail()), kept.view(fail()), kept.view(fail())]).await;
        assert!(failed.iter().all(Result::is_err));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert!(started.elapsed() < RETRY, "the readers queued");
        tokio::time::advance(RETRY).await;
        let view = Arc::new(CatalogView::new("a".into(), Vec::new()));
        assert!(kept.view(async { Ok(view) }).await.is_ok());
        assert!(kept.view(fail()).await.is_ok(), "the content is kept");
        let changed = catalogs.kept(&"a".into(), "sha256:2");
        assert!(changed.view(fail()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_catalog_does_not_wait_for_another_one() {
        let catalogs = Catalogs::default();
        let (slow, quick) = (catalogs.kept(&"a".into(), "1"), catalogs.kept(&"b".into(), "1"));
        let view = Arc::new(CatalogView::new("b".into(), Vec::new()));
        let stuck = slow.view(async {
            tokio::time::sleep(RETRY).await;
            Err(down())
        });
        tokio::select! {
            biased;
            _ = stuck => panic!("the stuck read ended first"),
            read = quick.view(async { Ok(view) }) => assert!(read.is_ok()),
        }
    }
}
