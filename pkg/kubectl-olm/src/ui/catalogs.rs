//! Contents of the catalogs, kept while the cluster serves them.
//!
//! All readers share the contents. Each read asks first, with the reader's own token, which catalogs there are and if the reader may read
//! their contents.

use std::sync::Arc;

use olm_text::name::CatalogName;
use olm_ui::{CatalogView, IconFile, icon_name};
use tokio::sync::Mutex;

use super::Reader;
use crate::failure::Failure;
use crate::source::Catalog;

/// Content of a catalog with the digest that it is of.
struct Kept {
    digest: String,
    view: Arc<CatalogView>,
}

/// Contents that were read. Each is read once for its digest, by one reader at a time.
#[derive(Default)]
pub(super) struct Catalogs {
    kept: Mutex<Vec<Kept>>,
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
        let mut kept = self.kept.lock().await;
        let names: Vec<&CatalogName> = catalogs.iter().map(|catalog| &catalog.name).collect();
        kept.retain(|one| names.contains(&one.view.name()));
        let mut contents = Contents {
            views: Vec::new(),
            remarks: Vec::new(),
        };
        for catalog in &catalogs {
            match view(&mut kept, catalog).await {
                Ok(view) => contents.views.push(view),
                Err(failure) => {
                    let remark = format!("Catalog {}: {}", catalog.name, failure.message());
                    contents.remarks.push(remark);
                }
            }
        }
        contents.views.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(contents)
    }

    /// Returns the icon with a file name, if a content that the reader may read has it. Pages with many icons ask the cluster for little.
    pub(super) async fn icon(&self, reader: &Reader, name: &str) -> Option<IconFile> {
        let views: Vec<Arc<CatalogView>> = {
            let kept = self.kept.lock().await;
            kept.iter().map(|one| one.view.clone()).collect()
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
}

async fn may_read(reader: &Reader, catalog: &CatalogName) -> bool {
    match &reader.bearer {
        // Only the user of this machine reads here.
        None => true,
        Some(bearer) => bearer.may_read(catalog).await.unwrap_or(false),
    }
}

async fn view(kept: &mut Vec<Kept>, catalog: &Catalog) -> Result<Arc<CatalogView>, Failure> {
    let digest = catalog.digest();
    let known = kept
        .iter()
        .find(|one| *one.view.name() == catalog.name && Some(one.digest.as_str()) == digest);
    if let Some(known) = known {
        return Ok(known.view.clone());
    }
    let packages = catalog.profiles().await?;
    let view = Arc::new(CatalogView::new(catalog.name.clone(), packages));
    kept.retain(|one| *one.view.name() != catalog.name);
    if let Some(digest) = digest {
        kept.push(Kept {
            digest: digest.to_owned(),
            view: view.clone(),
        });
    }
    Ok(view)
}
