//! Strict parser of `policy.json`.

use std::{collections::BTreeMap, fmt, fs::File, io::Read as _, marker::PhantomData, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _, MapAccess, Visitor},
};

use super::{
    identity::SignedIdentity,
    key::{PublicKey, SigstoreKeys},
    scope,
};
use crate::reference::Reference;

/// Transport of registries.
const DOCKER: &str = "docker";
/// Maximum size of a key file, in bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Invalid policy.
pub(super) enum FileError {
    Json(serde_json::Error),
    Scope { scope: String, cause: String },
}

/// Requirements by scope.
#[derive(Debug)]
pub(super) struct Content {
    default: Arc<Vec<Requirement>>,
    docker: BTreeMap<String, Arc<Vec<Requirement>>>,
}

/// Requirement with its keys loaded.
#[derive(Debug, Serialize)]
pub(super) enum Requirement {
    /// Accepts any image.
    Accept,
    /// Rejects every image.
    Reject,
    /// Requires a signature by one of these keys.
    Sigstore(SigstoreKeys),
    /// Known but unsupported requirement, by name.
    Unsupported(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    default: Vec<Rule>,
    #[serde(default)]
    transports: UniqueMap<UniqueMap<Vec<Rule>>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum Rule {
    #[serde(rename = "insecureAcceptAnything")]
    Accept {},
    #[serde(rename = "reject")]
    Reject {},
    #[serde(rename = "signedBy")]
    SignedBy(BTreeMap<String, serde_json::Value>),
    #[serde(rename = "sigstoreSigned")]
    Sigstore(Box<Sigstore>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sigstore {
    key_path: Option<String>,
    key_paths: Option<Vec<String>>,
    key_data: Option<String>,
    key_datas: Option<Vec<String>>,
    fulcio: Option<serde_json::Value>,
    pki: Option<serde_json::Value>,
    rekor_public_key_path: Option<serde_json::Value>,
    rekor_public_key_paths: Option<serde_json::Value>,
    rekor_public_key_data: Option<serde_json::Value>,
    rekor_public_key_datas: Option<serde_json::Value>,
    #[serde(default)]
    signed_identity: SignedIdentity,
}

/// Map that rejects duplicate keys: neither of two rules for a scope may win silently.
struct UniqueMap<T>(BTreeMap<String, T>);

impl<T> Default for UniqueMap<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for UniqueMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for Keys<T> {
            type Value = UniqueMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some((key, value)) = entries.next_entry::<String, T>()? {
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format!("duplicate key {key:?}")));
                    }
                    map.insert(key, value);
                }
                Ok(UniqueMap(map))
            }
        }
        deserializer.deserialize_map(Keys(PhantomData))
    }
}

/// Parses a policy and reads the keys it names.
pub(super) fn parse(bytes: &[u8]) -> Result<Content, FileError> {
    let mut text: PolicyFile = serde_json::from_slice(bytes).map_err(FileError::Json)?;
    let default = Arc::new(requirements("default", text.default)?);
    let docker = text.transports.0.remove(DOCKER).unwrap_or_default();
    let docker = docker
        .0
        .into_iter()
        .map(|(scope, rules)| {
            scope::validate(&scope).map_err(|cause| FileError::Scope {
                scope: format!("scope {scope:?}"),
                cause: cause.to_owned(),
            })?;
            let found = requirements(&scope_name(&scope), rules)?;
            Ok((scope, Arc::new(found)))
        })
        .collect::<Result<_, _>>()?;
    Ok(Content { default, docker })
}

impl Content {
    /// Returns the requirements for a reference, and their scope.
    pub(super) fn of(&self, requested: &Reference) -> (String, Arc<Vec<Requirement>>) {
        let mut scopes = scope::of(requested).into_iter().chain([String::new()]);
        match scopes.find_map(|scope| Some((scope_name(&scope), self.docker.get(&scope)?.clone()))) {
            Some(found) => found,
            None => ("default".to_owned(), self.default.clone()),
        }
    }
}

fn scope_name(scope: &str) -> String {
    if scope.is_empty() {
        "default of transport docker".to_owned()
    } else {
        format!("scope {scope}")
    }
}

fn requirements(scope: &str, rules: Vec<Rule>) -> Result<Vec<Requirement>, FileError> {
    let failed = |cause: String| FileError::Scope {
        scope: scope.to_owned(),
        cause,
    };
    if rules.is_empty() {
        return Err(failed("the list of requirements is empty".to_owned()));
    }
    rules
        .into_iter()
        .map(|rule| match rule {
            Rule::Accept {} => Ok(Requirement::Accept),
            Rule::Reject {} => Ok(Requirement::Reject),
            Rule::SignedBy(fields) => {
                // The key type only shows that this is a rule.
                if fields.contains_key("keyType") {
                    Ok(Requirement::Unsupported(
                        "signedBy (a signature by GPG)".to_owned(),
                    ))
                } else {
                    Err(failed("signedBy lacks keyType".to_owned()))
                }
            }
            Rule::Sigstore(rule) => sigstore(*rule).map_err(failed),
        })
        .collect()
}

fn sigstore(rule: Sigstore) -> Result<Requirement, String> {
    let Sigstore {
        key_path,
        key_paths,
        key_data,
        key_datas,
        fulcio,
        pki,
        rekor_public_key_path,
        rekor_public_key_paths,
        rekor_public_key_data,
        rekor_public_key_datas,
        signed_identity,
    } = rule;
    let key_sources = [
        key_path.is_some(),
        key_paths.is_some(),
        key_data.is_some(),
        key_datas.is_some(),
        fulcio.is_some(),
        pki.is_some(),
    ];
    if key_sources.into_iter().filter(|present| *present).count() != 1 {
        return Err(
            "sigstoreSigned needs exactly one of keyPath, keyPaths, keyData, keyDatas, fulcio and pki"
                .to_owned(),
        );
    }
    let rekor = [
        rekor_public_key_path,
        rekor_public_key_paths,
        rekor_public_key_data,
        rekor_public_key_datas,
    ];
    for (present, name) in [
        (fulcio.is_some(), "fulcio"),
        (pki.is_some(), "pki"),
        (rekor.iter().any(Option::is_some), "a Rekor key"),
    ] {
        if present {
            return Ok(Requirement::Unsupported(format!("sigstoreSigned with {name}")));
        }
    }
    signed_identity.validate()?;
    let mut keys = Vec::new();
    for path in key_path.into_iter().chain(key_paths.into_iter().flatten()) {
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_KEY_BYTES).read_to_end(&mut text))
            .map_err(|error| format!("key {path} cannot be read: {error}"))?;
        keys.push(PublicKey::from_pem(&text).map_err(|cause| format!("key {path}: {cause}"))?);
    }
    for data in key_data.into_iter().chain(key_datas.into_iter().flatten()) {
        let text = STANDARD
            .decode(data.trim())
            .map_err(|_| "keyData is not base64".to_owned())?;
        keys.push(PublicKey::from_pem(&text).map_err(|cause| format!("keyData: {cause}"))?);
    }
    if keys.is_empty() {
        return Err("the list of keys is empty".to_owned());
    }
    Ok(Requirement::Sigstore(SigstoreKeys {
        keys,
        identity: signed_identity,
    }))
}
