//! Lists of the Secrets in the controller's namespace.
//!
//! A list without a resource version waits until the API server knows that its cache is up to date: up to 0.1 s if nobody writes
//! Secrets. A list that is "not older than" the list before is answered at once. It has what any process wrote before this one listed
//! for the first time, which is enough to find what former processes left. For its own writes, a process asks for a list that is up to
//! date.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, ObjectList, PartialObjectMeta, VersionMatch};
use kube::{Api, Client};
use olm_applier::watch::is_older;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::call::{CallError, call};

/// Secrets of the controller's namespace.
pub(crate) struct SystemSecrets {
    api: Api<Secret>,
    /// Resource version of the newest list. `None` before the first one, and after a failed one: the API server may have been restored
    /// from a backup with lower versions.
    floor: Mutex<Option<String>>,
}

impl SystemSecrets {
    /// Creates the access to the Secrets of `namespace`.
    pub(crate) fn new(client: Client, namespace: &str) -> Arc<Self> {
        Arc::new(Self {
            api: Api::namespaced(client, namespace),
            floor: Mutex::default(),
        })
    }

    /// Returns the API, for everything but lists.
    pub(crate) fn api(&self) -> &Api<Secret> {
        &self.api
    }

    /// Lists the selected Secrets, with all that former processes wrote. `what` is for errors.
    pub(crate) async fn list(&self, what: String, selected: ListParams) -> Result<Vec<Secret>, CallError> {
        let list = async |params: &ListParams| self.api.list(params).await;
        self.listed(what, selected, false, list).await
    }

    /// Lists the metadata of the selected Secrets, with all that former processes wrote, and `up_to_date` also with what this one wrote.
    /// `what` is for errors.
    pub(crate) async fn list_metadata(
        &self,
        what: String,
        selected: ListParams,
        up_to_date: bool,
    ) -> Result<Vec<PartialObjectMeta<Secret>>, CallError> {
        let list = async |params: &ListParams| self.api.list_metadata(params).await;
        self.listed(what, selected, up_to_date, list).await
    }

    async fn listed<K: Clone + Debug + DeserializeOwned>(
        &self,
        what: String,
        selected: ListParams,
        up_to_date: bool,
        list: impl AsyncFnOnce(&ListParams) -> kube::Result<ObjectList<K>>,
    ) -> Result<Vec<K>, CallError> {
        let floor = self.floor.lock().clone().filter(|_| !up_to_date);
        let params = match floor {
            Some(floor) => selected.at(&floor).matching(VersionMatch::NotOlderThan),
            None => selected,
        };
        match call(what, list(&params)).await {
            Ok(found) => {
                let mut floor = self.floor.lock();
                let is_older =
                    |version: &String| floor.as_ref().is_some_and(|floor| is_older(version, floor));
                if let Some(version) = found
                    .metadata
                    .resource_version
                    .filter(|version| !is_older(version))
                {
                    *floor = Some(version);
                }
                drop(floor);
                Ok(found.items)
            }
            Err(error) => {
                *self.floor.lock() = None;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// Queries of the requests so far.
    type Queries = Arc<Mutex<Vec<String>>>;

    /// Returns Secrets whose lists have these versions in turn; a list without one fails.
    fn secrets(versions: [Option<&'static str>; 5]) -> (Arc<SystemSecrets>, Queries) {
        let (queries, versions) = (Queries::default(), Mutex::new(versions.into_iter()));
        let (asked, versions) = (Arc::clone(&queries), Arc::new(versions));
        let service = tower::service_fn(move |request: Request<Body>| {
            asked
                .lock()
                .push(request.uri().query().unwrap_or_default().to_owned());
            let version = versions.lock().next().flatten();
            let (code, body) = match version {
                Some(version) => (
                    200,
                    json!({"metadata": {"resourceVersion": version}, "items": []}),
                ),
                None => (
                    403,
                    json!({"status": "Failure", "message": "no", "reason": "Forbidden", "code": 403}),
                ),
            };
            let answer = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            async move { Ok::<_, tower::BoxError>(answer?) }
        });
        (
            SystemSecrets::new(Client::new(service, "default"), "system"),
            queries,
        )
    }

    #[tokio::test]
    async fn a_list_is_not_older_than_the_list_before() {
        let (secrets, queries) = secrets([Some("10"), Some("9"), Some("11"), None, Some("3")]);
        let list = async |up_to_date| {
            // The queries tell what a failed list leads to.
            let _ = secrets
                .list_metadata("listing".to_owned(), ListParams::default(), up_to_date)
                .await;
            queries.lock().pop().unwrap()
        };
        assert_eq!(list(false).await, "", "the first list is up to date");
        let not_older =
            |version: &str| format!("&resourceVersion={version}&resourceVersionMatch=NotOlderThan");
        assert_eq!(list(false).await, not_older("10"));
        assert_eq!(list(true).await, "");
        assert_eq!(list(false).await, not_older("11"), "numbers are compared");
        assert_eq!(list(false).await, "", "after a failure");
        assert_eq!(secrets.floor.lock().as_deref(), Some("3"));
    }
}
