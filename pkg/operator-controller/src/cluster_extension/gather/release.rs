//! Reads the Helm release of an extension that upstream's former runtime installed.
//!
//! Another program wrote the release, so its size and its number of objects are bounded.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use olm_api::keys;
use olm_api::names::{Segment, fits_label};
use olm_applier::plan::PackError;
use olm_text::quoted;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};

/// Value of the `owner` label on the Secrets of upstream's releases.
const OWNER: &str = "operator-controller";
/// Most Secrets of one release, as in upstream.
const CHUNKS: usize = 11;
/// Largest unpacked release, in bytes.
const RELEASE_LIMIT: u64 = 64 * 1024 * 1024;
/// Most objects of a release.
const OBJECTS: usize = 1000;
/// Release labels that identify the bundle.
const LABELS: [&str; 5] = [
    keys::BUNDLE_NAME_ANNOTATION,
    keys::PACKAGE_NAME_ANNOTATION,
    keys::BUNDLE_VERSION_ANNOTATION,
    keys::BUNDLE_REFERENCE_ANNOTATION,
    keys::BUNDLE_RELEASE_ANNOTATION,
];

/// Failure to read the revisions of an extension, or to take over its Helm release.
#[derive(Debug, Error)]
pub(crate) enum RevisionsError {
    /// A call to the API server failed.
    #[error("migrating storage")]
    Call(#[from] CallError),
    /// The release is malformed.
    #[error("migrating storage: the Helm release in Secret \"{secret}\" {why}")]
    Release {
        /// Secret of the release.
        secret: String,
        /// Cause.
        why: String,
    },
    /// The objects of the release do not fit into a revision.
    #[error("migrating storage: packing objects into Secrets")]
    Pack(#[source] PackError),
}

impl RevisionsError {
    /// Returns true if the same read or write fails until somebody mends the cause.
    pub(crate) fn lasts(&self) -> bool {
        match self {
            Self::Call(error) => error.is_refused(),
            Self::Release { .. } | Self::Pack(_) => true,
        }
    }
}

/// Identity of the index Secret of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleaseSecret {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: Option<String>,
}

/// Release as Helm stores it, with the fields that a revision needs.
#[derive(Deserialize)]
pub(crate) struct Release {
    /// Index Secret of the release.
    #[serde(skip)]
    pub secret: ReleaseSecret,
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    chart: Chart,
}

impl Release {
    /// Returns the objects of the release.
    pub(crate) fn objects(&self) -> Result<Vec<Value>, String> {
        objects(&self.manifest)
    }

    /// Returns the annotations of a revision that identify the bundle of the release.
    pub(crate) fn bundle_annotations(&self) -> BTreeMap<&'static str, String> {
        let mut annotations: BTreeMap<&'static str, String> = LABELS
            .into_iter()
            .filter_map(|key| Some((key, self.labels.get(key)?.clone())))
            .collect();
        let properties = self.chart.metadata.annotations.get(keys::PROPERTIES_ANNOTATION);
        annotations.extend(properties.map(|properties| (keys::PROPERTIES_ANNOTATION, properties.clone())));
        annotations
    }
}

#[derive(Default, Deserialize)]
struct Chart {
    #[serde(default)]
    metadata: ChartMetadata,
}

#[derive(Default, Deserialize)]
struct ChartMetadata {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Newest deployed release of an extension.
pub(crate) enum Deployed {
    /// There is none.
    None,
    /// No revision has taken it over.
    Release(Box<Release>),
    /// The revision of this name has taken it over.
    TakenOver(String),
}

/// Returns the deployed release of the extension with this name and uid.
pub(crate) async fn deployed(
    context: &Context,
    name: &str,
    uid: Option<&str>,
) -> Result<Deployed, RevisionsError> {
    let Some(index) = index(context, name, uid).await? else {
        return Ok(Deployed::None);
    };
    if let Some(revision) = taken_over_by(&index) {
        return Ok(Deployed::TakenOver(revision.clone()));
    }
    let bytes = compressed(context.secrets.api(), &index).await?;
    let secret = index.name_any();
    match decode(&bytes) {
        Ok(release) => {
            let secret = identity(&index);
            Ok(Deployed::Release(Box::new(Release { secret, ..release })))
        }
        Err(why) => Err(RevisionsError::Release { secret, why }),
    }
}

/// Returns the index Secret of the deployed release, unless a revision has taken the release over and says so.
pub(crate) async fn unmarked(
    context: &Context,
    name: &str,
    uid: Option<&str>,
) -> Result<Option<ReleaseSecret>, RevisionsError> {
    let found = index(context, name, uid).await?;
    let unmarked = found.filter(|index| taken_over_by(index).is_none());
    Ok(unmarked.as_ref().map(identity))
}

fn identity(index: &Secret) -> ReleaseSecret {
    ReleaseSecret {
        name: index.name_any(),
        uid: index.uid(),
    }
}

/// Returns the index Secret of the newest deployed release.
async fn index(context: &Context, name: &str, uid: Option<&str>) -> Result<Option<Secret>, RevisionsError> {
    if !fits_label(name) {
        return Ok(None);
    }
    let index = ListParams::default()
        .labels(&format!("owner={OWNER},name={name},type=index,status=deployed"))
        .fields(&format!("type={}", keys::RELEASE_INDEX_SECRET_TYPE));
    let what = format!("listing the Helm releases of ClusterExtension \"{name}\"");
    let found = context.secrets.list(what, index).await?;
    let Some(newest) = newest(found, uid) else {
        return Ok(None);
    };
    // A mark stays.
    if taken_over_by(&newest).is_some() {
        return Ok(Some(newest));
    }
    // The list may lack the last write of this process.
    let secret = newest.name_any();
    let what = format!("reading Secret \"{secret}\" of a Helm release");
    let index = call(what, context.secrets.api().get_opt(&secret)).await?;
    Ok(index.filter(|index| belongs_to(index, uid)))
}

/// Returns the index Secret of the newest release that belongs to the extension with this uid.
fn newest(found: Vec<Secret>, uid: Option<&str>) -> Option<Secret> {
    let version = |secret: &Secret| {
        let label = secret.labels().get("version");
        label
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or_default()
    };
    let own = found.into_iter().filter(|secret| belongs_to(secret, uid));
    own.max_by_key(version)
}

/// Returns false for the release of a former extension of the same name, which the garbage collector deletes.
fn belongs_to(secret: &Secret, uid: Option<&str>) -> bool {
    let mut owners = secret
        .owner_references()
        .iter()
        .filter(|owner| owner.kind == keys::OWNER_KIND_CLUSTER_EXTENSION)
        .peekable();
    owners.peek().is_none() || owners.any(|owner| uid.is_none_or(|uid| owner.uid == uid))
}

/// Returns the name of the revision that has taken the release over.
fn taken_over_by(secret: &Secret) -> Option<&String> {
    secret.annotations().get(keys::TAKEN_OVER_BY_ANNOTATION)
}

/// Returns the compressed release, joined from its Secrets.
async fn compressed(api: &Api<Secret>, index: &Secret) -> Result<Vec<u8>, RevisionsError> {
    let wrong = |why: &str| RevisionsError::Release {
        secret: index.name_any(),
        why: why.to_owned(),
    };
    let part = |secret: &Secret| Some(secret.data.as_ref()?.get("chunk")?.0.clone());
    let mut bytes = part(index).ok_or_else(|| wrong("has no data"))?;
    let extra = index.data.as_ref().and_then(|data| data.get("extraChunks"));
    let names: Vec<String> = match extra.filter(|list| !list.0.is_empty()) {
        Some(list) => {
            serde_json::from_slice(&list.0).map_err(|_| wrong("has a list of chunks that is no list"))?
        }
        None => Vec::new(),
    };
    if names.len() >= CHUNKS {
        return Err(wrong("has too many chunks"));
    }
    for name in names {
        let what = format!("reading Secret {} of a Helm release", quoted(&name, 253));
        let name = Segment::new(&name).map_err(|fault| wrong(&format!("has a chunk whose {fault}")))?;
        let chunk = call(what, api.get(&name)).await?;
        bytes.extend(part(&chunk).ok_or_else(|| wrong("has a chunk without data"))?);
    }
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<Release, String> {
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes)
        .take(RELEASE_LIMIT + 1)
        .read_to_end(&mut text);
    read.map_err(|error| format!("is not compressed as it should be: {error}"))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > RELEASE_LIMIT {
        return Err(format!("unpacks to more than {RELEASE_LIMIT} bytes"));
    }
    // Through a map, since serde also reads a struct from a list.
    serde_json::from_slice::<serde_json::Map<String, Value>>(&text)
        .and_then(|release| serde_json::from_value(Value::Object(release)))
        .map_err(|error| format!("is no release: {error}"))
}

/// Reads a manifest with one JSON object a line, the form that upstream's post-renderer writes.
fn objects(manifest: &str) -> Result<Vec<Value>, String> {
    let lines = manifest.lines().map(str::trim);
    let documents =
        lines.filter(|line| !line.is_empty() && !line.starts_with("---") && !line.starts_with('#'));
    let mut objects = Vec::new();
    for document in documents {
        if objects.len() == OBJECTS {
            return Err(format!("holds more than {OBJECTS} objects"));
        }
        let object: Value = serde_json::from_str(document)
            .map_err(|error| format!("holds a manifest that is no JSON: {error}"))?;
        objects.push(object);
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_release_has_labels_and_objects() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let release = json!({"name": "x", "manifest": format!("{map}\n{map}\n"), "info": {"status": "deployed"},
            "labels": {keys::BUNDLE_NAME_ANNOTATION: "x.v1"}, "chart": {"metadata": {"annotations": {"a": "b"}}}});
        let release = decode(&packed(&release.to_string())).unwrap();
        assert_eq!(release.labels[keys::BUNDLE_NAME_ANNOTATION], "x.v1");
        assert_eq!(objects(&release.manifest).unwrap(), [map.clone(), map]);
    }

    #[test]
    fn only_answers_of_the_api_server_last() {
        let call = |code: u16, reason: &str| {
            let status =
                json!({"kind": "Status", "status": "Failure", "message": "", "reason": reason, "code": code});
            let status = serde_json::from_value(status).unwrap();
            RevisionsError::Call(CallError::Api {
                what: "reading".to_owned(),
                source: Box::new(kube::Error::Api(Box::new(status))),
            })
        };
        for lasting in [
            call(403, "Forbidden"),
            call(404, "NotFound"),
            call(422, "Invalid"),
        ] {
            assert!(lasting.lasts(), "{lasting:?}");
        }
        let what = "reading".to_owned();
        for passing in [
            call(401, "Unauthorized"),
            call(409, "Conflict"),
            call(429, "TooManyRequests"),
            call(500, "InternalError"),
            RevisionsError::Call(CallError::Timeout { what }),
        ] {
            assert!(!passing.lasts(), "{passing:?}");
        }
        let (secret, why) = ("v1".to_owned(), "has no data".to_owned());
        assert!(RevisionsError::Release { secret, why }.lasts());
    }

    #[test]
    fn a_malformed_release_is_refused() {
        assert!(decode(b"text").is_err_and(|why| why.contains("not compressed")));
        assert!(decode(&packed("[]")).is_err_and(|why| why.contains("is no release")));
        let bomb = packed(&" ".repeat(usize::try_from(RELEASE_LIMIT).unwrap() + 1));
        assert!(decode(&bomb).is_err_and(|why| why.contains("unpacks to more")));
        assert!(objects("kind: ConfigMap").is_err_and(|why| why.contains("no JSON")));
        assert!(objects(&"{}\n".repeat(OBJECTS + 1)).is_err());
    }

    #[test]
    fn a_release_is_taken_over_once_and_by_its_own_extension() {
        let secret = |version: &str, uid: &str, annotations: Value| -> Secret {
            serde_json::from_value(json!({"metadata": {
                "name": format!("v{version}"), "labels": {"version": version}, "annotations": annotations,
                "ownerReferences": [{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": "x", "uid": uid}],
            }}))
            .unwrap()
        };
        let chosen = |found: &[Secret]| {
            let newest = newest(found.to_vec(), Some("new"))?;
            Some(
                taken_over_by(&newest)
                    .cloned()
                    .unwrap_or_else(|| newest.name_any()),
            )
        };
        let former = secret("11", "old", json!({}));
        let (first, second) = (secret("9", "new", json!({})), secret("10", "new", json!({})));
        assert_eq!(chosen(std::slice::from_ref(&former)), None);
        let all = [former.clone(), first.clone(), second];
        assert_eq!(chosen(&all).as_deref(), Some("v10"));
        let taken = secret("10", "new", json!({keys::TAKEN_OVER_BY_ANNOTATION: "x-1"}));
        assert_eq!(
            chosen(&[former, first, taken]).as_deref(),
            Some("x-1"),
            "no older release instead"
        );
        let mut unowned = secret("1", "old", json!({}));
        unowned.metadata.owner_references = None;
        assert_eq!(chosen(&[unowned]).as_deref(), Some("v1"));
    }
}
