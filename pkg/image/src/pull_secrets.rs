//! Follows the pull secrets of the cluster: the one of `--global-pull-secret`, and those that the
//! controller's own service account lists.
//!
//! Each Secret is watched by its name alone: whatever else is in the namespace is neither read nor
//! kept. Who we are is asked of the API server; outside the cluster that is no service account,
//! and only the named Secret counts.

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

/// What a service account's user name begins with.
const ACCOUNT: &str = "system:serviceaccount:";
/// How long one request may take, and the pause after one that failed.
const CALL: Duration = Duration::from_secs(10);

/// An object by its name; `None` when it is not there.
enum Seen {
    Account(Option<Vec<String>>),
    Secret(NamespacedName, Option<Contents>),
    Trouble(NamespacedName, String),
}

/// What matters of a Secret.
enum Contents {
    Text(SecretText),
    /// It holds neither of the keys we know.
    Other,
}

/// What is known of one Secret.
enum Known {
    Nothing,
    Absent,
    Other,
    Trouble(String),
    Text(SecretText),
}

/// Keeps `secrets` as the cluster has them, until `shutdown`.
pub async fn follow(
    client: Client,
    global: Option<NamespacedName>,
    secrets: PullSecrets,
    shutdown: CancellationToken,
) {
    let following = async {
        let account = own_account(&client).await;
        Follower {
            client,
            global,
            listed: Vec::new(),
            account_known: account.is_none(),
            account_trouble: None,
            account,
            known: BTreeMap::new(),
            secrets,
        }
        .run()
        .await;
    };
    shutdown.run_until_cancelled(following).await;
}

/// The service account that we are, asked for until the API server answers.
async fn own_account(client: &Client) -> Option<NamespacedName> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    loop {
        let parameters = PostParams::default();
        let review = SelfSubjectReview::default();
        let answer = tokio::time::timeout(CALL, reviews.create(&parameters, &review)).await;
        match answer {
            Ok(Ok(review)) => {
                let user = review.status.and_then(|status| status.user_info)?.username?;
                return account(&user);
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the controller's own service account is not known: its pull secrets are not used yet");
            }
            Err(_) => tracing::warn!("the API server does not say who the controller is"),
        }
        tokio::time::sleep(CALL).await;
    }
}

fn account(user: &str) -> Option<NamespacedName> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    Some(NamespacedName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

struct Follower {
    client: Client,
    global: Option<NamespacedName>,
    account: Option<NamespacedName>,
    account_known: bool,
    account_trouble: Option<String>,
    /// The Secrets that the account lists.
    listed: Vec<String>,
    known: BTreeMap<(String, String), Known>,
    secrets: PullSecrets,
}

impl Follower {
    async fn run(mut self) {
        let mut account: SelectAll<BoxStream<'static, Seen>> = SelectAll::new();
        if let Some(own) = self.account.clone() {
            account.push(self.watch(own, |_, found: Option<ServiceAccount>| {
                Seen::Account(found.map(listed))
            }));
        }
        let mut watched = self.watches();
        self.publish();
        loop {
            let seen = tokio::select! {
                Some(seen) = account.next() => match seen {
                    Seen::Trouble(name, trouble) => {
                        let NamespacedName { namespace, name } = name;
                        self.account_known = true;
                        self.account_trouble =
                            Some(format!("service account {namespace}/{name} cannot be read: {trouble}"));
                        self.publish();
                        continue;
                    }
                    seen => seen,
                },
                Some(seen) = watched.next() => seen,
                // Nothing to follow at all.
                else => return,
            };
            match seen {
                Seen::Account(names) => {
                    self.account_known = true;
                    self.account_trouble = None;
                    let names = names.unwrap_or_default();
                    if names != self.listed {
                        self.listed = names;
                        watched = self.watches();
                    }
                }
                Seen::Secret(name, contents) => {
                    let known = match contents {
                        None => Known::Absent,
                        Some(Contents::Other) => Known::Other,
                        Some(Contents::Text(text)) => Known::Text(text),
                    };
                    self.known.insert((name.namespace, name.name), known);
                }
                Seen::Trouble(name, trouble) => {
                    let known = self
                        .known
                        .entry((name.namespace, name.name))
                        .or_insert(Known::Nothing);
                    // What was read before stays good while the API server cannot be reached.
                    if !matches!(known, Known::Text(_)) {
                        *known = Known::Trouble(trouble);
                    }
                }
            }
            self.publish();
        }
    }

    /// The Secrets that count, in order: for a registry the later one wins.
    fn wanted(&self) -> Vec<NamespacedName> {
        let namespace = self.account.as_ref().map(|account| account.namespace.clone());
        let listed = self.listed.iter().filter_map(|name| {
            Some(NamespacedName {
                namespace: namespace.clone()?,
                name: name.clone(),
            })
        });
        self.global.iter().cloned().chain(listed).collect()
    }

    /// Fresh watches of the Secrets that count; what is known of others is forgotten.
    fn watches(&mut self) -> SelectAll<BoxStream<'static, Seen>> {
        let wanted = self.wanted();
        let mut before = std::mem::take(&mut self.known);
        let mut streams = SelectAll::new();
        for name in wanted {
            let key = (name.namespace.clone(), name.name.clone());
            if self.known.contains_key(&key) {
                continue;
            }
            let known = before.remove(&key).unwrap_or(Known::Nothing);
            self.known.insert(key, known);
            streams.push(self.watch(name, |name, found: Option<Secret>| {
                let contents = found.map(|secret| contents(name, secret));
                Seen::Secret(name.clone(), contents)
            }));
        }
        streams
    }

    fn watch<K, F>(&self, name: NamespacedName, seen: F) -> BoxStream<'static, Seen>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + Send + DeserializeOwned + 'static,
        K::DynamicType: Default,
        F: Fn(&NamespacedName, Option<K>) -> Seen + Send + 'static,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &name.namespace);
        watcher::watch_object(api, &name.name)
            .default_backoff()
            .map(move |found| match found {
                Ok(found) => seen(&name, found),
                Err(error) => Seen::Trouble(name.clone(), error.to_string()),
            })
            .boxed()
    }

    fn publish(&self) {
        let ready = self.account_known && self.known.values().all(|known| !matches!(known, Known::Nothing));
        let mut texts = Vec::new();
        let mut trouble: Vec<String> = self.account_trouble.iter().cloned().collect();
        for NamespacedName { namespace, name } in self.wanted() {
            let shown = format!("pull secret {namespace}/{name}");
            match self.known.get(&(namespace, name)) {
                Some(Known::Text(text)) => texts.push(text.clone()),
                Some(Known::Absent) => trouble.push(format!("{shown} does not exist")),
                Some(Known::Other) => trouble.push(format!(
                    "{shown} has neither of the keys .dockerconfigjson and .dockercfg"
                )),
                Some(Known::Trouble(cause)) => trouble.push(format!("{shown} cannot be read: {cause}")),
                Some(Known::Nothing) | None => {}
            }
        }
        if ready && let Err(error) = self.secrets.replace(texts) {
            trouble.push(format!("{error}; the credentials from before are still used"));
        }
        for trouble in &trouble {
            tracing::warn!("{trouble}");
        }
        self.secrets.set_trouble(trouble);
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

fn contents(name: &NamespacedName, secret: Secret) -> Contents {
    let mut data = secret.data.unwrap_or_default();
    let mut text = |key: &str, legacy| {
        let text = data.remove(key)?.0;
        Some(Contents::Text(SecretText {
            name: format!("{}/{}", name.namespace, name.name),
            text,
            legacy,
        }))
    };
    text(".dockerconfigjson", false)
        .or_else(|| text(".dockercfg", true))
        .unwrap_or(Contents::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_we_are() {
        let own = account("system:serviceaccount:olmv1-system:catalogd-controller-manager").unwrap();
        assert_eq!(own.namespace, "olmv1-system");
        assert_eq!(own.name, "catalogd-controller-manager");
        assert_eq!(account("kubernetes-admin"), None);
        assert_eq!(account("system:serviceaccount:half"), None);
    }
}
