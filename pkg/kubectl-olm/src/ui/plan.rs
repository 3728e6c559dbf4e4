//! Plans of extensions: expensive pages, as each pulls a bundle and sends dry runs.

use std::time::Duration;

use axum::response::Response;
use kube::ResourceExt as _;
use olm_ui::live::plan_page;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::answer::{absent, page};
use super::{Reader, extension, tables};
use crate::cli::plan::PlanArgs;
use crate::commands::plan::cluster::plan_of;
use crate::failure::Failure;
use crate::plan_report::Document;

/// Maximum number of plans of all readers at a time.
const PLANS: usize = 2;
/// Time limit of a plan, with the wait for its turn.
const LIMIT: Duration = Duration::from_mins(5);

/// Permits for plans.
pub(super) struct Plans(Semaphore);

impl Default for Plans {
    fn default() -> Self {
        Self(Semaphore::new(PLANS))
    }
}

impl Plans {
    /// Returns the page with a file name.
    ///
    /// # Errors
    /// The extensions cannot be listed.
    pub(super) async fn page_of(&self, reader: &Reader, file: &str) -> Result<Response, Failure> {
        let slug = file.strip_suffix(".html").unwrap_or_default();
        let Some(found) = extension::find(&reader.cluster, slug).await? else {
            return Ok(absent("The cluster has no such extension."));
        };
        let name = found.name_any();
        let args = PlanArgs::of(&name, reader.access.clone());
        let Ok(_own) = reader.plans.try_acquire() else {
            let waits =
                "another plan of yours is being made: load this page again when it is there".to_owned();
            return Ok(page(plan_page(&name, &Err(waits)).into_string()));
        };
        let work = async {
            // The semaphore is never closed.
            let _permit = self.0.acquire().await;
            let gates = reader.cluster.gates().await;
            Box::pin(plan_of(&reader.cluster, &args, &gates, Some(&name), None, &[])).await
        };
        let view = match timeout(LIMIT, work).await {
            Ok(plan) => plan
                .map(|plan| tables::plan(Document::new(&plan)))
                .map_err(|failure| failure.message()),
            Err(_) => Err("the plan took too long, or others wait for theirs: try again later".to_owned()),
        };
        Ok(page(plan_page(&name, &view).into_string()))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::json;

    use super::*;
    use crate::cli::AccessArgs;
    use crate::source::stand_in;

    #[tokio::test]
    async fn a_reader_makes_one_plan_at_a_time() {
        let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "kite"}, "spec": {"namespace": "sky", "source": {"sourceType": "Catalog"}}});
        let list = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtensionList", "metadata": {},
            "items": [extension]});
        let path = "/apis/olm.operatorframework.io/v1/clusterextensions";
        let cluster = stand_in::cluster(&[(path, 200, list)]).await;
        let reader = Reader {
            plans: Semaphore::new(1),
            ..Reader::of_user(cluster, AccessArgs::default())
        };
        let plans = Plans::default();
        let refused = async || {
            let Ok(answer) = plans.page_of(&reader, "kite.html").await else {
                panic!("the extension is listed")
            };
            let page = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            String::from_utf8_lossy(&page).contains("another plan of yours")
        };
        let own = reader.plans.acquire().await.unwrap();
        assert!(refused().await);
        drop(own);
        assert!(!refused().await);
    }
}
