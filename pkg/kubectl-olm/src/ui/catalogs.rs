//! Contents of the catalogs, kept while the cluster serves them.

use std::sync::Arc;

use olm_text::name::CatalogName;
use olm_ui::{CatalogView, IconFile, icon_name};
use tokio::sync::Mutex;

use crate::failure::Failure;
use crate::source::{Catalog, Cluster};

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
    pub(super) views: Vec<Arc<CatalogView>>,
    pub(super) remarks: Vec<String>,
}

impl Catalogs {
    /// Returns the contents that the cluster serves now.
    ///
    /// # Errors
    /// The catalogs cannot be listed.
    pub(super) async fn read(&self, cluster: &Cluster) -> Result<Contents, Failure> {
        let catalogs = cluster.catalogs().await?;
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
}

impl Catalogs {
    /// Returns the icon with a file name, if a content that was read has it. Pages with many icons ask nothing of the cluster.
    pub(super) async fn icon(&self, name: &str) -> Option<IconFile> {
        let kept = self.kept.lock().await;
        let packages = kept.iter().flat_map(|one| one.view.packages());
        let mut icons = packages.filter_map(|package| package.icon.as_ref());
        icons.find(|icon| icon_name(icon) == name).map(IconFile::new)
    }
}

async fn view(kept: &mut Vec<Kept>, catalog: &Catalog) -> Result<Arc<CatalogView>, Failure> {
    let digest = catalog.digest().unwrap_or_default();
    let known = kept
        .iter()
        .find(|one| *one.view.name() == catalog.name && one.digest == digest);
    if let Some(known) = known {
        return Ok(known.view.clone());
    }
    let packages = catalog.profiles().await?;
    let view = Arc::new(CatalogView::new(catalog.name.clone(), packages));
    kept.retain(|one| *one.view.name() != catalog.name);
    kept.push(Kept {
        digest: digest.to_owned(),
        view: view.clone(),
    });
    Ok(view)
}
