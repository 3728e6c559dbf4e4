//! Clients of a revision: the controller's own, or one that impersonates a service account.

use http::header::{HeaderName, HeaderValue};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::Api;
use kube::client::Body;
use tokio::sync::OnceCell;

use super::call::timed;
use super::{Engine, EngineError, Reads, Revision};
use crate::account::Account;

const USER_HEADER: HeaderName = HeaderName::from_static("impersonate-user");

/// Returns a client that impersonates `account`, over the connections of `client`.
///
/// The client sends no groups: the API server adds a service account's groups itself, and impersonating groups would
/// require the right to impersonate any.
///
/// # Errors
/// None for any [`Account`]; the type of the header requires a result.
pub fn impersonate(client: &Client, account: &Account) -> Result<Client, http::header::InvalidHeaderValue> {
    let user = HeaderValue::from_str(&account.user())?;
    let inner = client.clone();
    let service = tower::service_fn(move |mut request: http::Request<Body>| {
        let (client, user) = (inner.clone(), user.clone());
        async move {
            request.headers_mut().insert(USER_HEADER, user);
            client.send(request).await
        }
    });
    Ok(Client::new(service, account.namespace().to_owned()))
}

/// Clients of a revision. The service account is looked up at the first write: an account that does not exist has no
/// rights, even if bindings to its name remain.
pub(super) struct RevisionClients<'a> {
    engine: &'a Engine,
    account: Option<&'a Account>,
    client: OnceCell<Client>,
}

impl<'a> RevisionClients<'a> {
    pub(super) fn new(engine: &'a Engine, revision: &'a Revision) -> Self {
        Self {
            engine,
            account: revision.account.as_ref(),
            client: OnceCell::new(),
        }
    }

    pub(super) async fn writer(&self) -> Result<&Client, EngineError> {
        self.client
            .get_or_try_init(|| async {
                let Some(account) = self.account else {
                    return Ok(self.engine.client.clone());
                };
                if exists(&self.engine.client, account).await? {
                    self.engine.impersonated(account)
                } else {
                    Err(self.engine.missing_account(account))
                }
            })
            .await
    }

    /// Returns the client for reads of the revision.
    pub(super) async fn reader(&self) -> Result<&Client, EngineError> {
        match self.engine.reads {
            Reads::AsController => Ok(&self.engine.client),
            Reads::AsAccount => self.writer().await,
        }
    }
}

async fn exists(client: &Client, account: &Account) -> Result<bool, EngineError> {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), account.namespace());
    let found = timed(api.get_metadata_opt(account.name())).await;
    let found = found.map_err(|source| EngineError::Account {
        account: account.clone(),
        source,
    })?;
    Ok(found.is_some())
}
