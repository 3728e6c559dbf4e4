//! Whose rights are used: the controller's own, or those of a service account it acts as.

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

/// A client that speaks as `account`, over the connections of `client`.
///
/// Groups are not sent: the API server puts a service account into its groups by itself, and to name groups the controller would
/// need the right to be a member of any.
///
/// # Errors
/// None for any [`Account`]; the type of the header asks for it.
pub fn acting_as(client: &Client, account: &Account) -> Result<Client, http::header::InvalidHeaderValue> {
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

/// The client that writes for a revision, looked up at the first write: an account that does not exist has no rights, whatever is
/// still bound to its name.
pub(super) struct Writer<'a> {
    engine: &'a Engine,
    account: Option<&'a Account>,
    client: OnceCell<Client>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(engine: &'a Engine, revision: &'a Revision) -> Self {
        Self {
            engine,
            account: revision.account.as_ref(),
            client: OnceCell::new(),
        }
    }

    pub(super) async fn client(&self) -> Result<&Client, EngineError> {
        self.client
            .get_or_try_init(|| async {
                let Some(account) = self.account else {
                    return Ok(self.engine.client.clone());
                };
                if exists(&self.engine.client, account).await? {
                    self.engine.actor(account)
                } else {
                    Err(self.engine.no_account(account))
                }
            })
            .await
    }

    /// The client that reads for the revision.
    pub(super) async fn reader(&self) -> Result<&Client, EngineError> {
        match self.engine.reads {
            Reads::AsController => Ok(&self.engine.client),
            Reads::AsAccount => self.client().await,
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
