//! Dry runs of the wanted objects on the cluster.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::BASE64;
use futures::{StreamExt as _, TryStreamExt as _};
use olm_api::keys;
use olm_bundle::OwnCertificate;
use olm_plan::{DryRun, Plan};
use olm_text::object::{ObjectId, manifest, text};
use olm_text::{counted, head};
use serde_json::Value;

use crate::failure::Failure;
use crate::source::{Cluster, DryRunError, Kinds};

/// Number of dry runs at a time.
const PARALLEL: usize = 8;
/// Maximum length of an API server's message, in bytes.
const MESSAGE_LIMIT: usize = 600;

/// Result for one object.
enum Seen {
    Run(Box<DryRun>),
    Refused(String),
    Unchecked(String),
    /// No dry run: this namespace is created with the extension.
    InNamespace(String),
}

/// Kinds and namespaces that come to the cluster with the wanted objects.
struct Coming {
    /// Group and kind of each CRD.
    kinds: BTreeSet<(String, String)>,
    /// Namespaces that are not on the cluster yet.
    namespaces: BTreeSet<String>,
}

/// Applies every wanted object in a dry run and adds the results to the plan. `known` are the objects of the newest revision.
pub(super) async fn observe(
    cluster: &Cluster,
    extension: &str,
    known: &[Value],
    wanted: Vec<Value>,
    plan: &mut Plan,
) -> Result<(), Failure> {
    let wanted: Vec<Value> = wanted
        .into_iter()
        .map(|object| manifest(object, &[keys::LAST_APPLIED_ANNOTATION]))
        .collect();
    let kinds = cluster.kinds(&wanted).await?;
    let own: BTreeSet<[String; 4]> = known.iter().map(key).collect();
    let coming = Coming {
        kinds: wanted.iter().filter_map(defines).collect(),
        namespaces: absent_namespaces(cluster, &wanted, &kinds).await?,
    };
    // A list, because the compiler does not find the stream of a closure over references to be `Send`.
    let mut runs = Vec::with_capacity(wanted.len());
    for object in &wanted {
        let foreign = !own.contains(&key(object));
        runs.push(one(cluster, extension, object, &kinds, foreign, &coming));
    }
    let seen: Vec<Seen> = futures::stream::iter(runs)
        .buffered(PARALLEL)
        .try_collect()
        .await?;
    let mut done = Vec::new();
    let mut later: BTreeMap<String, usize> = BTreeMap::new();
    for seen in seen {
        match seen {
            Seen::Run(run) => done.push(*run),
            Seen::Refused(reason) => plan.refusals.push(reason),
            Seen::Unchecked(reason) => plan.unchecked.push(reason),
            Seen::InNamespace(namespace) => *later.entry(namespace).or_default() += 1,
        }
    }
    plan.unchecked
        .extend(later.into_iter().map(|(namespace, number)| {
        format!(
            "{} of namespace {namespace}: no dry run, because the namespace is created with the extension",
            counted(number, "object")
        )
    }));
    plan.observe(done);
    Ok(())
}

fn key(object: &Value) -> [String; 4] {
    let id = ObjectId::of(object);
    [id.group, id.kind, id.namespace, id.name].map(ToOwned::to_owned)
}

/// Returns the wanted namespaces that the cluster does not have. One that may not be read counts as present: the dry runs tell.
async fn absent_namespaces(
    cluster: &Cluster,
    wanted: &[Value],
    kinds: &Kinds,
) -> Result<BTreeSet<String>, Failure> {
    let mut absent = BTreeSet::new();
    for object in wanted {
        let id = ObjectId::of(object);
        if !id.group.is_empty() || id.kind != "Namespace" {
            continue;
        }
        match cluster.seen(object, kinds).await {
            Ok(None) => drop(absent.insert(id.name.to_owned())),
            Err(DryRunError::Source(error)) => return Err(error.into()),
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(absent)
}

/// Returns group and kind that a CRD defines.
fn defines(object: &Value) -> Option<(String, String)> {
    let is_crd = ObjectId::of(object).is_crd();
    is_crd.then(|| {
        (
            text(object, "/spec/group").to_owned(),
            text(object, "/spec/names/kind").to_owned(),
        )
    })
}

async fn one(
    cluster: &Cluster,
    extension: &str,
    object: &Value,
    kinds: &Kinds,
    foreign: bool,
    coming: &Coming,
) -> Result<Seen, Failure> {
    let id = ObjectId::of(object);
    let shown = olm_plan::ObjectRef::of(object).to_string();
    if kinds.of(object).is_none() {
        let kind = (id.group.to_owned(), id.kind.to_owned());
        return Ok(if coming.kinds.contains(&kind) {
            Seen::Unchecked(format!(
                "{shown}: no dry run, because its CRD is part of the same bundle and not on the cluster yet"
            ))
        } else {
            Seen::Refused(format!(
                "{shown}: the cluster does not serve {} of {}; install the API first",
                id.kind,
                text(object, "/apiVersion")
            ))
        });
    }
    if coming.namespaces.contains(id.namespace) {
        return Ok(Seen::InNamespace(id.namespace.to_owned()));
    }
    let before = match cluster.seen(object, kinds).await {
        Ok(before) => before,
        Err(DryRunError::Forbidden(cause)) => {
            return Ok(Seen::Unchecked(format!(
                "{shown}: you may not read it ({}); the plan shows the difference to the revision",
                head(&cause, MESSAGE_LIMIT)
            )));
        }
        Err(DryRunError::Refused(cause)) => return Ok(Seen::Refused(format!("{shown}: {cause}"))),
        Err(DryRunError::Source(error)) => return Err(error.into()),
    };
    if let Some(live) = before.as_ref().filter(|_| foreign)
        && !belongs(live, extension)
    {
        return Ok(Seen::Refused(format!(
            "{shown} exists already and does not belong to ClusterExtension {extension:?}; delete it, or remove it from the bundle"
        )));
    }
    let applied = with_owners(object, before.as_ref());
    Ok(match cluster.dry_run(&applied, kinds).await {
        Ok(Some(after)) => Seen::Run(Box::new(DryRun { before, after })),
        Ok(None) => Seen::Unchecked(format!("{shown}: no dry run, because its name is invalid")),
        Err(DryRunError::Forbidden(cause)) => Seen::Unchecked(format!(
            "{shown}: you may not apply it in a dry run ({}); the plan shows the difference to the revision",
            head(&cause, MESSAGE_LIMIT)
        )),
        Err(DryRunError::Refused(cause)) => Seen::Refused(format!(
            "{shown}: the API server refuses it: {}",
            head(&cause, MESSAGE_LIMIT)
        )),
        Err(DryRunError::Source(error)) => return Err(error.into()),
    })
}

/// Returns the object with the owner references of the one on the cluster: plans do not show owners, and a change of owners needs rights
/// of its own.
fn with_owners(object: &Value, live: Option<&Value>) -> Value {
    let mut object = object.clone();
    let owners = live.and_then(|live| live.pointer("/metadata/ownerReferences"));
    if let (Some(owners), Some(metadata)) =
        (owners, object.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("ownerReferences".to_owned(), owners.clone());
    }
    object
}

/// Returns true if an object on the cluster is of the extension, or waits for one: a removal kept it with what it holds.
fn belongs(live: &Value, extension: &str) -> bool {
    let labels = live.pointer("/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let kept = label(keys::KEPT_FROM_LABEL).is_some() && label(keys::OWNER_NAME_LABEL).is_none();
    let ours = label(keys::OWNER_NAME_LABEL) == Some(extension)
        && label(keys::OWNER_KIND_LABEL) == Some(keys::OWNER_KIND_CLUSTER_EXTENSION);
    ours || kept
}

/// Returns the certificate in the Secret of this name among the objects of a revision.
pub(super) fn certificate(objects: &[Value], secret: &str) -> Option<OwnCertificate> {
    let found = objects.iter().find(|object| {
        let id = ObjectId::of(object);
        id.kind == "Secret" && id.name == secret && text(object, "/type") == "kubernetes.io/tls"
    })?;
    let pem = |name: &str| {
        let data = found.get("data")?.get(name)?.as_str()?;
        String::from_utf8(BASE64.decode(data.as_bytes()).ok()?).ok()
    };
    Some(OwnCertificate {
        ca_pem: pem("ca.crt")?,
        cert_pem: pem("tls.crt")?,
        key_pem: pem("tls.key")?,
        next: pem("next.crt")
            .zip(pem("next.key"))
            .map(|(cert_pem, key_pem)| olm_bundle::NextCertificate { cert_pem, key_pem }),
    })
}
