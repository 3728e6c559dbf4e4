//! Reads if the installed operator holds its own upgrade.
//!
//! The controller reads `OperatorConditions` of OLM Classic with its own rights, and the object that the bundle names with the rights
//! that read the extension's other objects.

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use olm_api::names::Segment;
use olm_decide::extension::{BundleRef, History, Revision};
use olm_rollout::hold::{self, Hold, NamedObject, Opinion};
use olm_runtime::client::{discovery_call, is_absent, served_kinds};
use olm_text::quoted;
use serde_json::Value;

use crate::cluster_extension::account;
use crate::cluster_extension::call::{CallError, call};
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::hold_watches::Holder;
use crate::cluster_extension::pass::Pass;

/// Maximum length of a name in messages, in bytes.
const NAME_LIMIT: usize = 253;

/// A hold of the installed operator.
pub(crate) struct Held {
    /// The object, as a phrase.
    pub object: String,
    /// Its condition.
    pub hold: Hold,
    /// The object, to be watched.
    pub holder: Holder,
}

/// Returns the hold of the installed operator on an upgrade to the bundle `to`; `None` if it holds nothing, or if the change is no
/// upgrade.
pub(crate) async fn held(
    pass: &Pass<'_>,
    history: &History,
    to: &BundleRef,
) -> Result<Option<Held>, Failure> {
    let Some(installed) = history.upgraded_by(&to.version) else {
        return Ok(None);
    };
    match by_operator_condition(pass, installed).await? {
        Read::Permits => Ok(None),
        Read::Holds(held) => Ok(Some(*held)),
        Read::Silent => by_named_object(pass, installed).await,
    }
}

/// Verdict of an object, with the object.
type Read = Opinion<Box<Held>>;

/// Reads the `OperatorConditions` with the names of the installed bundle and of the extension. An administrator's permission in either
/// counts.
async fn by_operator_condition(pass: &Pass<'_>, installed: &Revision) -> Result<Read, Failure> {
    let kind = GroupVersionKind::gvk(
        hold::OPERATOR_CONDITION_GROUP,
        hold::OPERATOR_CONDITION_VERSION,
        hold::OPERATOR_CONDITION_KIND,
    );
    let resource = ApiResource::from_gvk_with_plural(&kind, hold::OPERATOR_CONDITION_PLURAL);
    let place = Place {
        client: pass.context.shared.client.clone(),
        resource,
        namespace: namespace(pass, installed),
    };
    let mut verdict = Read::Silent;
    for name in [installed.bundle.name.as_str(), &pass.name] {
        let read = match place.read(name, hold::of_operator_condition).await {
            Err(error) if error.is_forbidden() => {
                let (group, version) = (kind.group.as_str(), kind.version.as_str());
                let served = served_kinds(&place.client, group, version);
                let served = call(discovery_call(group, version), served).await?;
                if served.contains(&kind.kind) {
                    return Err(place.unreadable(name));
                }
                // Without the CRD, no right is needed.
                return Ok(Read::Silent);
            }
            read => read?,
        };
        verdict = verdict.and(read);
        if matches!(verdict, Read::Permits) {
            break;
        }
    }
    Ok(verdict)
}

/// Reads the object that the ClusterServiceVersion of the installed bundle names.
async fn by_named_object(pass: &Pass<'_>, installed: &Revision) -> Result<Option<Held>, Failure> {
    let Some(text) = &installed.upgradeable_condition else {
        return Ok(None);
    };
    let Some(named) = NamedObject::parse(text) else {
        tracing::warn!(
            annotation = quoted(text, NAME_LIMIT),
            "the bundle names no object of the form Kind.version.group/name for its condition Upgradeable; nothing holds the upgrade"
        );
        return Ok(None);
    };
    let client = account::reader(pass.context, pass.extension)?;
    let kind = GroupVersionKind::gvk(&named.group, &named.version, &named.kind);
    let what = format!("asking for kind {}", named.kind);
    let (resource, scope) = match call(what, pinned_kind(&client, &kind)).await {
        Ok((resource, capabilities)) => (resource, capabilities.scope),
        Err(error) if is_unserved(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let namespace = (scope == Scope::Namespaced)
        .then(|| namespace(pass, installed))
        .flatten();
    let place = Place {
        client,
        resource,
        namespace,
    };
    match place.read(&named.name, hold::of_named_object).await {
        Err(error) if error.is_forbidden() => Err(place.unreadable(&named.name)),
        read => Ok(read?.hold().map(|held| *held)),
    }
}

/// Returns the namespace of the installed operator: that of the spec, or the one that was chosen for it.
fn namespace(pass: &Pass<'_>, installed: &Revision) -> Option<String> {
    let given = pass.extension.spec.namespace.clone();
    given.or_else(|| installed.install_namespace.clone())
}

fn is_unserved(error: &CallError) -> bool {
    match error {
        CallError::Api { source, .. } => matches!(**source, kube::Error::Discovery(_)) || is_absent(source),
        CallError::Timeout { .. } | CallError::Exists { .. } | CallError::Interrupted { .. } => false,
    }
}

/// Kind and namespace of an object that can hold an upgrade.
struct Place {
    client: Client,
    resource: ApiResource,
    /// `None` for a cluster-scoped kind.
    namespace: Option<String>,
}

impl Place {
    async fn read(&self, name: &str, judge: fn(&Value) -> Opinion) -> Result<Read, CallError> {
        // The name is foreign; no API server has an object of another one.
        let Ok(segment) = Segment::new(name) else {
            return Ok(Read::Silent);
        };
        let object = self.object(name);
        let found = match call(format!("reading {object}"), self.api().get_opt(&segment)).await {
            Err(error) if error.is_not_found() => None,
            found => found?,
        };
        let Some(found) = found else {
            return Ok(Read::Silent);
        };
        // An object that was read as JSON can be written as JSON.
        let value = serde_json::to_value(found).unwrap_or_default();
        Ok(judge(&value).map(|hold| {
            Box::new(Held {
                object,
                holder: Holder {
                    api: self.api(),
                    name: name.to_owned(),
                    opinion: judge,
                    seen: Opinion::Holds(hold.clone()),
                },
                hold,
            })
        }))
    }

    fn api(&self) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.resource),
            None => Api::all_with(self.client.clone(), &self.resource),
        }
    }

    fn unreadable(&self, name: &str) -> Failure {
        Failure::HoldUnreadable {
            object: self.object(name),
            resource: format!("{}.{}", self.resource.plural, self.resource.group),
        }
    }

    /// Returns the object as a phrase.
    fn object(&self, name: &str) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.resource.kind, quoted(name, NAME_LIMIT)),
            None => format!("{} {}", self.resource.kind, quoted(name, NAME_LIMIT)),
        }
    }
}
