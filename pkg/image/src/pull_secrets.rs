//! Watches the cluster's pull secrets: the Secret of `--global-pull-secret`, and those in the `imagePullSecrets` of the
//! controller's own service account.
//!
//! Each Secret is watched by name alone; other Secrets of the namespace are neither read nor kept. A
//! `SelfSubjectReview` finds the service account. Outside the cluster there is none, and only the named Secret applies.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use futures::{
    StreamExt as _,
    stream::{BoxStream, SelectAll},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        authentication::v1::SelfSubjectReview,
        core::v1::{Secret, ServiceAccount},
    },
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher},
};
use olm_runtime::args::NamespacedName;
use tokio_util::sync::CancellationToken;

use crate::auth::{PullSecrets, SecretText};

/// Prefix of a service account's user name.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// Timeout of one request, and delay after a failed one.
const API_TIMEOUT: Duration = Duration::from_secs(10);

/// Event of a watch; `None` if the object does not exist.
enum WatchEvent {
    Account(Option<Vec<String>>),
    Secret(NamespacedName, Option<SecretContent>),
    Problem(NamespacedName, String),
}

/// Content of a Secret.
enum SecretContent {
    Text(SecretText),
    /// The Secret has neither of the known keys.
    Other,
}

/// Last known state of a Secret.
enum SecretState {
    Unknown,
    Absent,
    Other,
    Problem(String),
    Text(SecretText),
}

/// Updates `secrets` from the cluster until `shutdown`.
pub async fn watch_pull_secrets(
    client: Client,
    global: Option<NamespacedName>,
    secrets: PullSecrets,
    shutdown: CancellationToken,
) {
    let watching = async {
        let account = own_account(&client).await;
        SecretWatcher {
            client,
            global,
            listed: Vec::new(),
            account_read: account.is_none(),
            account_problem: None,
            account,
            states: BTreeMap::new(),
            secrets,
        }
        .run()
        .await;
    };
    shutdown.run_until_cancelled(watching).await;
}

/// Returns our own service account, asking until the API server answers.
async fn own_account(client: &Client) -> Option<NamespacedName> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    loop {
        let parameters = PostParams::default();
        let review = SelfSubjectReview::default();
        let answer = tokio::time::timeout(API_TIMEOUT, reviews.create(&parameters, &review)).await;
        match answer {
            Ok(Ok(review)) => {
                let user = review.status.and_then(|status| status.user_info)?.username?;
                return account(&user);
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not look up the controller's service account: its pull secrets are not used yet");
            }
            Err(_) => tracing::warn!("timed out looking up the controller's service account"),
        }
        tokio::time::sleep(API_TIMEOUT).await;
    }
}

fn account(user: &str) -> Option<NamespacedName> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    Some(NamespacedName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

struct SecretWatcher {
    client: Client,
    global: Option<NamespacedName>,
    account: Option<NamespacedName>,
    account_read: bool,
    account_problem: Option<String>,
    /// Secrets in the account's `imagePullSecrets`.
    listed: Vec<String>,
    states: BTreeMap<(String, String), SecretState>,
    secrets: PullSecrets,
}

impl SecretWatcher {
    async fn run(mut self) {
        let mut account: SelectAll<BoxStream<'static, WatchEvent>> = SelectAll::new();
        if let Some(own) = self.account.clone() {
            account.push(self.watch(own, |_, found: Option<ServiceAccount>| {
                WatchEvent::Account(found.map(listed))
            }));
        }
        let mut watched = self.start_watches();
        self.publish();
        loop {
            let event = tokio::select! {
                Some(event) = account.next() => match event {
                    WatchEvent::Problem(name, problem) => {
                        let NamespacedName { namespace, name } = name;
                        self.account_read = true;
                        self.account_problem =
                            Some(format!("service account {namespace}/{name} cannot be read: {problem}"));
                        self.publish();
                        continue;
                    }
                    event => event,
                },
                Some(event) = watched.next() => event,
                // There is nothing to watch.
                else => return,
            };
            match event {
                WatchEvent::Account(names) => {
                    self.account_read = true;
                    self.account_problem = None;
                    let names = names.unwrap_or_default();
                    if names != self.listed {
                        self.listed = names;
                        watched = self.start_watches();
                    }
                }
                WatchEvent::Secret(name, contents) => {
                    let state = match contents {
                        None => SecretState::Absent,
                        Some(SecretContent::Other) => SecretState::Other,
                        Some(SecretContent::Text(text)) => SecretState::Text(text),
                    };
                    self.states.insert((name.namespace, name.name), state);
                }
                WatchEvent::Problem(name, problem) => {
                    let state = self
                        .states
                        .entry((name.namespace, name.name))
                        .or_insert(SecretState::Unknown);
                    // Credentials read before stay valid while the API server is unreachable.
                    if !matches!(state, SecretState::Text(_)) {
                        *state = SecretState::Problem(problem);
                    }
                }
            }
            self.publish();
        }
    }

    /// Returns the Secrets to use in ascending precedence.
    fn sources(&self) -> Vec<NamespacedName> {
        let namespace = self.account.as_ref().map(|account| account.namespace.clone());
        let listed = self.listed.iter().filter_map(|name| {
            Some(NamespacedName {
                namespace: namespace.clone()?,
                name: name.clone(),
            })
        });
        self.global.iter().cloned().chain(listed).collect()
    }

    /// Starts a watch per Secret to use; drops the state of others.
    fn start_watches(&mut self) -> SelectAll<BoxStream<'static, WatchEvent>> {
        let sources = self.sources();
        let mut before = std::mem::take(&mut self.states);
        let mut streams = SelectAll::new();
        for name in sources {
            let key = (name.namespace.clone(), name.name.clone());
            if self.states.contains_key(&key) {
                continue;
            }
            let state = before.remove(&key).unwrap_or(SecretState::Unknown);
            self.states.insert(key, state);
            streams.push(self.watch(name, |name, found: Option<Secret>| {
                let contents = found.map(|secret| contents(name, secret));
                WatchEvent::Secret(name.clone(), contents)
            }));
        }
        streams
    }

    fn watch<K, F>(&self, name: NamespacedName, to_event: F) -> BoxStream<'static, WatchEvent>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + Send + DeserializeOwned + 'static,
        K::DynamicType: Default,
        F: Fn(&NamespacedName, Option<K>) -> WatchEvent + Send + 'static,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &name.namespace);
        watcher::watch_object(api, &name.name)
            .default_backoff()
            .map(move |found| match found {
                Ok(found) => to_event(&name, found),
                Err(error) => WatchEvent::Problem(name.clone(), error.to_string()),
            })
            .boxed()
    }

    fn publish(&self) {
        let ready = self.account_read
            && self
                .states
                .values()
                .all(|state| !matches!(state, SecretState::Unknown));
        let mut texts = Vec::new();
        let mut problems: Vec<String> = self.account_problem.iter().cloned().collect();
        for NamespacedName { namespace, name } in self.sources() {
            let shown = format!("pull secret {namespace}/{name}");
            match self.states.get(&(namespace, name)) {
                Some(SecretState::Text(text)) => texts.push(text.clone()),
                Some(SecretState::Absent) => problems.push(format!("{shown} does not exist")),
                Some(SecretState::Other) => problems.push(format!(
                    "{shown} has neither of the keys .dockerconfigjson and .dockercfg"
                )),
                Some(SecretState::Problem(cause)) => {
                    problems.push(format!("{shown} cannot be read: {cause}"));
                }
                Some(SecretState::Unknown) | None => {}
            }
        }
        if ready {
            problems.extend(self.secrets.replace(texts).iter().map(ToString::to_string));
        }
        for problem in &problems {
            tracing::warn!("{problem}");
        }
        self.secrets.set_problems(problems);
    }
}

fn listed(account: ServiceAccount) -> Vec<String> {
    let references = account.image_pull_secrets.unwrap_or_default();
    references
        .into_iter()
        .map(|reference| reference.name)
        .filter(|name| !name.is_empty())
        .collect()
}

fn contents(name: &NamespacedName, secret: Secret) -> SecretContent {
    let mut data = secret.data.unwrap_or_default();
    let mut text = |key: &str, legacy| {
        let text = data.remove(key)?.0;
        Some(SecretContent::Text(SecretText {
            name: format!("{}/{}", name.namespace, name.name),
            text,
            legacy,
        }))
    };
    text(".dockerconfigjson", false)
        .or_else(|| text(".dockercfg", true))
        .unwrap_or(SecretContent::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_of_a_user_name() {
        let own = account("system:serviceaccount:olmv1-system:catalogd-controller-manager").unwrap();
        assert_eq!(own.namespace, "olmv1-system");
        assert_eq!(own.name, "catalogd-controller-manager");
        assert_eq!(account("kubernetes-admin"), None);
        assert_eq!(account("system:serviceaccount:half"), None);
    }
}
