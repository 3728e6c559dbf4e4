//! Extensions of the cluster: revisions, objects, events. Only reads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams};
use olm_api::names::{Segment, fits_label};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::content::{self, SecretPlace};
use olm_applier::workload::{Diagnosis, Workload};
use olm_status::cluster_upgrade::reached_version;
use serde_json::Value;

use super::call::{call, find};
use super::cluster::Cluster;
use super::error::SourceError;

/// Namespace of events about cluster-scoped objects.
const EVENTS_NAMESPACE: &str = "default";

/// Most pods of a workload that are read.
const MAX_PODS: u32 = 100;

/// The objects of one phase of a revision.
pub(crate) struct PhaseObjects {
    /// The phase.
    pub(crate) name: String,
    /// Its objects as the revision lists them, except unresolved ones.
    pub(crate) objects: Vec<Value>,
    /// Reasons why objects cannot be read from their Secrets, each once: even their names are unknown.
    pub(crate) unresolved: Vec<String>,
}

impl Cluster {
    /// Lists the extensions by name.
    pub(crate) async fn extensions(&self) -> Result<Vec<ClusterExtension>, SourceError> {
        let api: Api<ClusterExtension> = Api::all(self.client().clone());
        let list = call("listing the ClusterExtensions", api.list(&ListParams::default())).await?;
        let mut items = list.items;
        items.sort_by_key(kube::ResourceExt::name_any);
        Ok(items)
    }

    /// Returns an extension by name.
    pub(crate) async fn one_extension(&self, name: &str) -> Result<Option<ClusterExtension>, SourceError> {
        let api: Api<ClusterExtension> = Api::all(self.client().clone());
        let Ok(segment) = Segment::new(name) else {
            return Ok(None);
        };
        call(
            &format!("reading ClusterExtension \"{name}\""),
            api.get_opt(&segment),
        )
        .await
    }

    /// Lists the revisions of an extension, or of all extensions, oldest first.
    pub(crate) async fn revisions(&self, of: Option<&str>) -> Result<Vec<ClusterObjectSet>, SourceError> {
        // No object carries a label with a longer name, and the API server refuses the selector.
        if of.is_some_and(|name| !fits_label(name)) {
            return Ok(Vec::new());
        }
        let api: Api<ClusterObjectSet> = Api::all(self.client().clone());
        let selector = keys::selector_of_extension(of);
        let what = match of {
            Some(name) => format!("listing the ClusterObjectSets of ClusterExtension \"{name}\""),
            None => "listing the ClusterObjectSets".to_owned(),
        };
        let list = call(&what, api.list(&ListParams::default().labels(&selector))).await?;
        let mut items = list.items;
        items.sort_by_key(|set| (owner(set).to_owned(), set.spec.revision));
        Ok(items)
    }

    /// Returns the objects of a revision, inline or from its Secrets.
    pub(crate) async fn objects(&self, set: &ClusterObjectSet) -> Result<Vec<PhaseObjects>, SourceError> {
        let system = self.system_namespace();
        let mut secrets = BTreeMap::new();
        for place in content::places(set, system) {
            let what = format!("reading Secret \"{}\"", place.name);
            let secret = call(&what, content::secret(self.client(), &place)).await?;
            secrets.insert(place, secret);
        }
        let mut phases = Vec::new();
        for phase in set.spec.phases.iter().flatten() {
            let (mut objects, mut unresolved) = (Vec::new(), Vec::new());
            for entry in &phase.objects {
                objects.extend(entry.object.clone());
                let Some(reference) = &entry.ref_ else { continue };
                let place = SecretPlace::of(reference, system);
                let secret = secrets.get(&place).and_then(Option::as_ref);
                match content::object(reference, &place, secret) {
                    Ok(object) => objects.push(object),
                    Err(error) => {
                        let why = error.to_string();
                        if !unresolved.contains(&why) {
                            unresolved.push(why);
                        }
                    }
                }
            }
            phases.push(PhaseObjects {
                name: phase.name.clone(),
                objects,
                unresolved,
            });
        }
        Ok(phases)
    }

    /// Returns the problems of a workload's pods, of at most [`MAX_PODS`]; none if the pods cannot be read.
    pub(crate) async fn diagnosis(&self, workload: &Workload) -> Diagnosis {
        let pods: Api<Pod> = Api::namespaced(self.client().clone(), &workload.namespace);
        let params = ListParams::default().labels(&workload.selector).limit(MAX_PODS);
        let found = call("listing the pods of a workload", pods.list(&params)).await;
        let pods = found.map(|list| list.items).unwrap_or_default();
        Diagnosis::of(workload, &pods, k8s_openapi::jiff::Timestamp::now())
    }

    /// Lists the events about an extension and its revisions, oldest first.
    pub(crate) async fn events(&self, extension: &str) -> Result<Vec<Event>, SourceError> {
        let revisions = self.revisions(Some(extension)).await?;
        let api: Api<Event> = Api::namespaced(self.client().clone(), EVENTS_NAMESPACE);
        let list = call("listing the events", api.list(&ListParams::default())).await?;
        let about = |event: &Event| {
            let Some(object) = &event.regarding else {
                return false;
            };
            let name = object.name.as_deref().unwrap_or_default();
            match object.kind.as_deref() {
                Some("ClusterExtension") => name == extension,
                Some("ClusterObjectSet") => revisions.iter().any(|set| set.name_any() == name),
                _ => false,
            }
        };
        let mut events: Vec<Event> = list.items.into_iter().filter(about).collect();
        events.sort_by_key(last_seen);
        Ok(events)
    }

    /// Returns the version of Kubernetes.
    pub(crate) async fn kube_version(&self) -> Result<String, SourceError> {
        let reading = self.client().apiserver_version();
        let info = call("reading the API server's version", reading).await?;
        Ok(info.git_version)
    }

    /// Returns the versions of Kubernetes and, if present, of OpenShift.
    pub(crate) async fn versions(&self) -> Result<(String, Option<String>), SourceError> {
        let kubernetes = self.kube_version().await?;
        // Elsewhere, the API server answers users without rights that the resource is forbidden, not that it is absent.
        let served = self.served("config.openshift.io/v1", "ClusterVersion").await?;
        let Some((kind, _)) = served else {
            return Ok((kubernetes, None));
        };
        let api: Api<DynamicObject> = Api::all_with(self.client().clone(), &kind);
        let version = find("reading the ClusterVersion", api.get_opt("version")).await?;
        let version = version.and_then(|version| reached_version(&version.data).map(ToOwned::to_owned));
        Ok((kubernetes, version))
    }
}

/// Returns the name of a revision's extension.
pub(crate) fn owner(set: &ClusterObjectSet) -> &str {
    set.labels()
        .get(keys::OWNER_NAME_LABEL)
        .map_or("", String::as_str)
}

/// Returns the time at which an event was last seen, RFC 3339.
pub(crate) fn last_seen(event: &Event) -> String {
    let series = event.series.as_ref().map(|series| series.last_observed_time.0);
    let time = series.or_else(|| event.event_time.as_ref().map(|time| time.0));
    time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}
