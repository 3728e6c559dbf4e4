//! Takes over an extension that upstream's Helm runtime had installed: its release becomes the first revision.
//!
//! The release stays where it is; its Secrets belong to the extension and go with it. The revision holds what the release holds, so
//! adopting the objects by server-side apply changes no pod. What is read was written by another program: sizes and counts are bounded.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::names::Segment;
use olm_api::text::quoted;
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::plan::{self, PackError};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::call::{CallError, call};
use super::{Context, account, act};

/// What upstream names itself in the labels of its releases.
const OWNER: &str = "operator-controller";
/// How many Secrets a release may be spread over, as upstream has it.
const CHUNKS: usize = 11;
/// Largest unpacked release in bytes.
const RELEASE_LIMIT: u64 = 64 * 1024 * 1024;
/// Most objects of a release.
const OBJECTS: usize = 1000;
/// What of the release's labels says which bundle it is.
const LABELS: [&str; 5] = [
    keys::BUNDLE_NAME_ANNOTATION,
    keys::PACKAGE_NAME_ANNOTATION,
    keys::BUNDLE_VERSION_ANNOTATION,
    keys::BUNDLE_REFERENCE_ANNOTATION,
    keys::BUNDLE_RELEASE_ANNOTATION,
];

/// Why a release cannot be taken over.
#[derive(Debug, Error)]
pub(crate) enum HelmError {
    /// The API server refused.
    #[error("migrating storage")]
    Call(#[from] CallError),
    /// The release cannot be read.
    #[error("migrating storage: the Helm release in Secret \"{secret}\" {why}")]
    Release {
        /// Its Secret.
        secret: String,
        /// What is wrong with it.
        why: String,
    },
    /// Its objects do not fit into a revision.
    #[error("migrating storage: packing objects into Secrets")]
    Pack(#[source] PackError),
}

#[derive(Deserialize)]
struct Release {
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    chart: Chart,
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

/// Makes the first revision from the deployed release of `extension`, which has no revision yet; `None` when there is no release.
pub(crate) async fn take_over(
    context: &Context,
    extension: &ClusterExtension,
    now: &Time,
) -> Result<Option<ClusterObjectSet>, HelmError> {
    let name = extension.name_any();
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &context.shared.system_namespace);
    let index = ListParams::default()
        .labels(&format!("owner={OWNER},name={name},type=index,status=deployed"))
        .fields(&format!("type={}", keys::RELEASE_INDEX_SECRET_TYPE));
    let what = format!("listing the Helm releases of ClusterExtension \"{name}\"");
    let found = call(what, api.list(&index)).await?.items;
    let version = |secret: &Secret| {
        let label = secret.labels().get("version");
        label
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or_default()
    };
    let Some(newest) = found.into_iter().max_by_key(version) else {
        return Ok(None);
    };
    let secret = newest.name_any();
    let bytes = gather(&api, &newest).await?;
    let release = decode(&bytes).map_err(|why| HelmError::Release {
        secret: secret.clone(),
        why,
    })?;
    tracing::info!(ClusterExtension = name, secret, "taking over a Helm release");
    let made = write(context, extension, &release).await?;
    succeed(context, made, now).await.map(Some)
}

/// The compressed release, put together from its Secrets.
async fn gather(api: &Api<Secret>, index: &Secret) -> Result<Vec<u8>, HelmError> {
    let wrong = |why: &str| HelmError::Release {
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
    // By way of a map: a struct alone would also be read from a list.
    serde_json::from_slice::<serde_json::Map<String, Value>>(&text)
        .and_then(|release| serde_json::from_value(Value::Object(release)))
        .map_err(|error| format!("is no release: {error}"))
}

/// One object a line, as upstream's post-renderer writes them.
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

async fn write(
    context: &Context,
    extension: &ClusterExtension,
    release: &Release,
) -> Result<ClusterObjectSet, HelmError> {
    let owner = extension.name_any();
    let name = format!("{owner}-1");
    let objects = objects(&release.manifest).map_err(|why| HelmError::Release {
        secret: name.clone(),
        why,
    })?;
    let phases = plan::phases(objects, &plan::Stamp::default());
    let system = &context.shared.system_namespace;
    let packed = plan::pack(&name, system, &owner, phases).map_err(HelmError::Pack)?;
    act::create_secrets(context, &packed.secrets).await?;
    let mut annotations: BTreeMap<&str, String> = LABELS
        .into_iter()
        .filter_map(|key| Some((key, release.labels.get(key)?.clone())))
        .collect();
    if let Some(properties) = release
        .chart
        .metadata
        .annotations
        .get(keys::PROPERTIES_ANNOTATION)
    {
        annotations.insert(keys::PROPERTIES_ANNOTATION, properties.clone());
    }
    let account = account::annotations(extension).into_iter();
    annotations.extend(account.filter_map(|(key, value)| Some((key, value?))));
    let revision = json!({
        "apiVersion": ClusterObjectSet::api_version(&()),
        "kind": ClusterObjectSet::kind(&()),
        "metadata": {
            "name": name,
            "labels": {
                keys::OWNER_KIND_LABEL: keys::OWNER_KIND_CLUSTER_EXTENSION, keys::OWNER_NAME_LABEL: owner,
                keys::MIGRATED_FROM_HELM_LABEL: "true",
            },
            "annotations": annotations,
            "ownerReferences": [act::reference::<ClusterExtension>(extension)],
            "finalizers": [keys::TEARDOWN_FINALIZER],
        },
        // Everything is there already, and belongs to the extension itself.
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "None", "phases": packed.phases},
    });
    let sets: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let params = PatchParams::apply(keys::EXTENSION_FIELD_MANAGER).force();
    let what = format!("creating Revision \"{name}\" from a Helm release");
    let made = call(what, sets.patch(&name, &params, &Patch::Apply(&revision))).await?;
    act::own_secrets(context, &packed.secrets, &made).await?;
    Ok(made)
}

/// What Helm had deployed counts as installed from the start: what comes next must be its successor.
async fn succeed(
    context: &Context,
    made: ClusterObjectSet,
    now: &Time,
) -> Result<ClusterObjectSet, HelmError> {
    let sets: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let mut conditions = made
        .status
        .clone()
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    let succeeded = olm_status::condition::NewCondition {
        type_: "Succeeded".to_owned(),
        status: "True".to_owned(),
        reason: "Succeeded".to_owned(),
        message: "Revision succeeded - migrated from Helm release".to_owned(),
        observed_generation: made.metadata.generation.unwrap_or_default(),
    };
    olm_status::condition::set(&mut conditions, succeeded, now);
    let name = made.name_any();
    let what = format!("writing the status of Revision \"{name}\"");
    let patch = json!({"metadata": {"resourceVersion": made.resource_version()}, "status": {"conditions": conditions}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    Ok(call(what, sets.patch_status(&name, &params, &patch)).await?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_release_says_what_it_is_of_and_what_it_holds() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let release = json!({"name": "x", "manifest": format!("{map}\n{map}\n"), "info": {"status": "deployed"},
            "labels": {keys::BUNDLE_NAME_ANNOTATION: "x.v1"}, "chart": {"metadata": {"annotations": {"a": "b"}}}});
        let release = decode(&packed(&release.to_string())).unwrap();
        assert_eq!(release.labels[keys::BUNDLE_NAME_ANNOTATION], "x.v1");
        assert_eq!(objects(&release.manifest).unwrap(), [map.clone(), map]);
    }

    #[test]
    fn what_is_no_release_is_refused_in_words() {
        assert!(decode(b"text").is_err_and(|why| why.contains("not compressed")));
        assert!(decode(&packed("[]")).is_err_and(|why| why.contains("is no release")));
        let bomb = packed(&" ".repeat(usize::try_from(RELEASE_LIMIT).unwrap() + 1));
        assert!(decode(&bomb).is_err_and(|why| why.contains("unpacks to more")));
        assert!(objects("kind: ConfigMap").is_err_and(|why| why.contains("no JSON")));
        assert!(objects(&"{}\n".repeat(OBJECTS + 1)).is_err());
    }
}
