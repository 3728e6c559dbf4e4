//! The format of `policy.json`, read strictly.

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

/// The transport of registries.
const DOCKER: &str = "docker";
/// Larger files are no keys.
const KEY_BYTES: u64 = 64 * 1024;

/// Why a text is no policy.
pub(super) enum FileError {
    Json(serde_json::Error),
    Scope { scope: String, cause: String },
}

/// The requirements by scope.
#[derive(Debug)]
pub(super) struct Content {
    default: Arc<Vec<Requirement>>,
    docker: BTreeMap<String, Arc<Vec<Requirement>>>,
}

/// One requirement, with its keys read.
#[derive(Debug, Serialize)]
pub(super) enum Requirement {
    /// Any image.
    Accept,
    /// No image.
    Reject,
    /// Signed by one of these keys.
    Sigstore(SigstoreKeys),
    /// What is known but not supported, by its name.
    Unsupported(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    default: Vec<Rule>,
    #[serde(default)]
    transports: Unique<Unique<Vec<Rule>>>,
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

/// A map whose keys stand once: of two rules for a scope none may win silently.
struct Unique<T>(BTreeMap<String, T>);

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Unique<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for Keys<T> {
            type Value = Unique<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some((key, value)) = entries.next_entry::<String, T>()? {
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format!("{key:?} stands twice")));
                    }
                    map.insert(key, value);
                }
                Ok(Unique(map))
            }
        }
        deserializer.deserialize_map(Keys(PhantomData))
    }
}

/// Reads a policy, and the keys it names.
pub(super) fn parse(bytes: &[u8]) -> Result<Content, FileError> {
    let mut text: Text = serde_json::from_slice(bytes).map_err(FileError::Json)?;
    let default = Arc::new(requirements("default", text.default)?);
    let docker = text.transports.0.remove(DOCKER).unwrap_or_default();
    let docker = docker
        .0
        .into_iter()
        .map(|(scope, rules)| {
            scope::valid(&scope).map_err(|cause| FileError::Scope {
                scope: format!("scope {scope:?}"),
                cause: cause.to_owned(),
            })?;
            let found = requirements(&shown(&scope), rules)?;
            Ok((scope, Arc::new(found)))
        })
        .collect::<Result<_, _>>()?;
    Ok(Content { default, docker })
}

impl Content {
    /// The requirements that count for a reference, and where they stand.
    pub(super) fn of(&self, wanted: &Reference) -> (String, Arc<Vec<Requirement>>) {
        let mut scopes = scope::of(wanted).into_iter().chain([String::new()]);
        match scopes.find_map(|scope| Some((shown(&scope), self.docker.get(&scope)?.clone()))) {
            Some(found) => found,
            None => ("default".to_owned(), self.default.clone()),
        }
    }
}

fn shown(scope: &str) -> String {
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
                // That it is a rule at all is all we can tell.
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
    let given = [
        key_path.is_some(),
        key_paths.is_some(),
        key_data.is_some(),
        key_datas.is_some(),
        fulcio.is_some(),
        pki.is_some(),
    ];
    if given.into_iter().filter(|given| *given).count() != 1 {
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
    for (there, name) in [
        (fulcio.is_some(), "fulcio"),
        (pki.is_some(), "pki"),
        (rekor.iter().any(Option::is_some), "a Rekor key"),
    ] {
        if there {
            return Ok(Requirement::Unsupported(format!("sigstoreSigned with {name}")));
        }
    }
    signed_identity.valid()?;
    let mut keys = Vec::new();
    for path in key_path.into_iter().chain(key_paths.into_iter().flatten()) {
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(KEY_BYTES).read_to_end(&mut text))
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
