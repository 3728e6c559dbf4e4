//! The world: dispatch of requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use olm_proof::{Actor, Change, ObjectKey, Preconditions};
use serde_json::{Value, json};

use crate::custom::CustomKind;
use crate::kinds::{Resource, builtin_resources};
use crate::request::{Answer, Parameters, Request, User};
use crate::status::Refusal;
use crate::store::{Event, Key, Store};

/// Options of a world.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespaces that exist from the start.
    pub namespaces: Vec<String>,
    /// Time of creation of these namespaces.
    pub now: Timestamp,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespaces: ["default", "kube-system", "kube-public", "kube-node-lease"]
                .map(Into::into)
                .into(),
            now: Timestamp::UNIX_EPOCH,
        }
    }
}

/// Simulated API server: a value without clock and IO. A clone shares the objects until one of both is written.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) store: Store,
    /// Kinds of the CRDs by the CRD's name.
    pub(crate) custom: Arc<BTreeMap<String, Arc<CustomKind>>>,
    /// Stored forms that differ from what readers see: custom resources without defaults that came later, or with
    /// empty or null metadata of an apply. A write that stores another form is one even if readers see no change.
    pub(crate) encoded: Arc<BTreeMap<Key, Arc<Value>>>,
    /// Number of uids and random names so far.
    pub(crate) drawn: u64,
}

/// One request on its way.
pub(crate) struct Call {
    pub actor: Actor,
    pub user: User,
    pub manager: String,
    pub parameters: Parameters,
    pub content_type: String,
    pub dry_run: bool,
    pub now: Timestamp,
    pub changes: Vec<Change>,
}

impl Call {
    /// Returns the call of a part of the control plane.
    pub(crate) fn of_control_plane(name: &str, now: Timestamp) -> Self {
        Self {
            actor: Actor::Other(name.into()),
            user: User::admin(),
            manager: name.into(),
            parameters: Parameters::default(),
            content_type: String::new(),
            dry_run: false,
            now,
            changes: Vec::new(),
        }
    }

    /// Returns the time in the form of objects: whole seconds.
    pub(crate) fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// Object that a request is about.
pub(crate) struct Target {
    pub resource: Arc<Resource>,
    /// Namespace; empty for cluster scope or all namespaces.
    pub namespace: String,
    /// Name; empty for a list.
    pub name: String,
    /// Subresource; empty for the object.
    pub subresource: String,
}

impl Target {
    pub(crate) fn key(&self) -> Key {
        Key {
            group: self.resource.group.clone(),
            plural: self.resource.plural.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl World {
    /// Returns a world with the namespaces of `options` and no CRD.
    pub fn new(options: &Options) -> Self {
        let mut world = Self {
            store: Store::default(),
            custom: Arc::default(),
            encoded: Arc::default(),
            drawn: 0,
        };
        for name in &options.namespaces {
            let mut call = Call::of_control_plane("kube-apiserver", options.now);
            let target = Target {
                resource: Arc::new(crate::kinds::namespace_resource().clone()),
                namespace: String::new(),
                name: String::new(),
                subresource: String::new(),
            };
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            // The name is the only input, and a valid one cannot be refused.
            let _ = world.create(&mut call, &target, namespace);
        }
        world
    }

    /// Returns a world of default options with the project's CRDs, established.
    pub fn with_olm_crds() -> Self {
        let mut world = Self::new(&Options::default());
        world.install_olm_crds(Timestamp::UNIX_EPOCH);
        world
    }

    /// Creates the project's CRDs and establishes them.
    pub fn install_olm_crds(&mut self, now: Timestamp) {
        let objects = olm_manifests::render(&[]).unwrap_or_default();
        for crd in objects.iter().filter(|object| olm_manifests::is_crd(object)) {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let request = Request::new(Actor::Other("setup".into()), "POST", path).with_body(crd);
            self.handle(&request, now);
        }
        self.tick(now);
    }

    /// Handles a request.
    pub fn handle(&mut self, request: &Request, now: Timestamp) -> Answer {
        let mut call = Call {
            actor: request.actor.clone(),
            user: request.user.clone(),
            manager: String::new(),
            parameters: request.parameters(),
            content_type: media_type(&request.content_type),
            dry_run: false,
            now,
            changes: Vec::new(),
        };
        call.dry_run = call.parameters.dry_run();
        let agent = request.user_agent.split('/').next().unwrap_or_default();
        agent.clone_into(&mut call.manager);
        if let Some(manager) = call.parameters.get("fieldManager") {
            call.manager = manager.to_owned();
        }
        match self.dispatch(&mut call, request) {
            Ok(Outcome::Object(status, body)) => respond(status, &body, call.changes),
            Ok(Outcome::Text(body)) => Answer::Response {
                status: 200,
                headers: vec![("content-type".into(), "text/plain; charset=utf-8".into())],
                body: body.into_bytes(),
                changes: Vec::new(),
            },
            Ok(Outcome::Watch(watch)) => Answer::Watch(watch),
            Err(refusal) => refused(&refusal, call.changes),
        }
    }

    fn dispatch(&mut self, call: &mut Call, request: &Request) -> Result<Outcome, Refusal> {
        self.impersonate(call, request)?;
        let segments: Vec<&str> = request
            .path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        if let Some(outcome) = self.discovery(&segments, request)? {
            return Ok(outcome);
        }
        let target = self.target(&segments)?;
        let verb = verb(request, &target, call);
        self.authorize(call, &target, verb)?;
        let form = crate::form::Form::of(&request.accept);
        let (status, object) = match (request.method.as_str(), target.name.is_empty()) {
            ("GET", _) if verb == "watch" => return self.watch(call, target, form).map(Outcome::Watch),
            ("GET", true) => {
                return self
                    .list(call, &target, form)
                    .map(|list| Outcome::Object(200, list));
            }
            ("GET", false) => (200, Value::clone(&*self.get(&target)?)),
            ("POST", true) if target.resource.traits.review => {
                (201, self.review(call, &target, crate::decode::body(request)?)?)
            }
            ("POST", true) => (201, self.create(call, &target, crate::decode::body(request)?)?),
            ("PUT", false) => self.update(call, &target, crate::decode::body(request)?)?,
            ("PATCH", false) => self.patch(call, &target, &request.body)?,
            ("DELETE", false) => self.delete(call, &target, &request.body)?,
            ("DELETE", true) => (200, self.delete_all(call, &target, &request.body)?),
            _ => return Err(Refusal::method()),
        };
        Ok(Outcome::Object(status, form.object(object)))
    }

    /// Finds the object that a path names.
    fn target(&self, segments: &[&str]) -> Result<Target, Refusal> {
        let (group, version, rest) = match segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(Refusal::path()),
        };
        let named = |namespace: &str, plural: &str, name: &str, subresource: &str| {
            let resource = self.resource(group, version, plural).ok_or_else(Refusal::path)?;
            if resource.namespaced == namespace.is_empty() && !name.is_empty()
                || !resource.namespaced && !namespace.is_empty()
            {
                return Err(Refusal::path());
            }
            if !subresource.is_empty() && !has_subresource(&resource, subresource) {
                return Err(if resource.traits.custom {
                    Refusal::not_found(&resource, name)
                } else {
                    Refusal::subresource()
                });
            }
            Ok(Target {
                resource,
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                subresource: subresource.to_owned(),
            })
        };
        match rest {
            ["namespaces"] if group.is_empty() => named("", "namespaces", "", ""),
            ["namespaces", name] if group.is_empty() => named("", "namespaces", name, ""),
            ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
                named("", "namespaces", name, sub)
            }
            ["namespaces", namespace, plural] => named(namespace, plural, "", ""),
            ["namespaces", namespace, plural, name] => named(namespace, plural, name, ""),
            ["namespaces", namespace, plural, name, sub] => named(namespace, plural, name, sub),
            [plural] => named("", plural, "", ""),
            [plural, name] => named("", plural, name, ""),
            [plural, name, sub] => named("", plural, name, sub),
            _ => Err(Refusal::path()),
        }
    }

    /// Returns the resource of a version of a group if it is served.
    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let builtin = builtin_resources().iter().find(|resource| {
            resource.group == group && resource.version == version && resource.plural == plural
        });
        if let Some(found) = builtin {
            return Some(Arc::new(found.clone()));
        }
        let custom = self.custom.get(&format!("{plural}.{group}"))?;
        custom.version(version).map(|found| Arc::clone(&found.resource))
    }

    /// Returns some served version of a stored resource.
    pub(crate) fn resource_of(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        let builtin = builtin_resources()
            .iter()
            .find(|resource| resource.group == group && resource.plural == plural);
        if let Some(found) = builtin {
            return Some(Arc::new(found.clone()));
        }
        let custom = self.custom.get(&format!("{plural}.{group}"))?;
        custom.versions().next().map(|found| Arc::clone(&found.resource))
    }

    /// Returns the resource of a kind if it is served.
    pub(crate) fn resource_of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let is = |resource: &Resource| {
            resource.group == group && resource.version == version && resource.kind == kind
        };
        if let Some(found) = builtin_resources().iter().find(|resource| is(resource)) {
            return Some(Arc::new(found.clone()));
        }
        let mut custom = self.custom.values().flat_map(|kind| kind.versions());
        custom
            .find(|version| is(&version.resource))
            .map(|version| Arc::clone(&version.resource))
    }

    /// Returns an object.
    pub(crate) fn get(&self, target: &Target) -> Result<Arc<Value>, Refusal> {
        let found = self.store.get(&target.key());
        let found = found.ok_or_else(|| Refusal::not_found(&target.resource, &target.name))?;
        Ok(target.resource.at_version(found))
    }

    /// Stores an object in its stored form, or removes an object, and records the change.
    pub(crate) fn commit(
        &mut self,
        call: &mut Call,
        key: &Key,
        resource: &Resource,
        after: Option<Value>,
        deletion: Option<Preconditions>,
    ) -> Event {
        let after = after.map(|encoded| self.encode(key, encoded, resource));
        if after.is_none() {
            self.forget_encoded(key);
        }
        let event = self.store.write(key, |revision| {
            after.map(|mut object| {
                crate::value::metadata(&mut object)
                    .insert("resourceVersion".into(), revision.to_string().into());
                object
            })
        });
        if key.plural == "customresourcedefinitions" {
            self.refresh_kind(&key.name, event.after.as_ref());
        }
        call.changes.push(Change {
            actor: call.actor.clone(),
            object: ObjectKey {
                group: key.group.clone(),
                kind: resource.kind.clone(),
                namespace: (!key.namespace.is_empty()).then(|| key.namespace.clone()),
                name: key.name.clone(),
            },
            before: event.before.clone(),
            after: event.after.clone(),
            deletion,
        });
        event
    }

    /// Returns a uid that no object had before.
    pub(crate) fn draw_uid(&mut self) -> String {
        self.drawn += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.drawn)
    }

    /// Returns the random end of a generated name.
    pub(crate) fn draw_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.drawn += 1;
        let mut rest = self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut out = String::new();
        for _ in 0..5 {
            let at = usize::try_from(rest % 27).unwrap_or_default();
            out.push(char::from(LETTERS[at]));
            rest /= 27;
        }
        out
    }

    /// Returns all objects, ordered by group, plural, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = (&Arc<Key>, &Arc<Value>)> {
        self.store.all()
    }

    /// Returns an object by its key.
    pub fn object(&self, key: &Key) -> Option<&Arc<Value>> {
        self.store.get(key)
    }

    /// Returns the resource version of the last write.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Returns the events after a resource version that are not forgotten, oldest first.
    pub fn history(&self, after: u64) -> &[Event] {
        self.store.history(after)
    }

    /// Forgets the events up to a resource version: watches and continued lists from there get 410.
    pub fn compact(&mut self, revision: u64) {
        self.store.compact(revision);
    }

    /// Returns the resource version up to which events are forgotten.
    pub fn compacted(&self) -> u64 {
        self.store.compacted()
    }
}

/// Result of a request that was not refused.
pub(crate) enum Outcome {
    Object(u16, Value),
    Text(String),
    Watch(Box<crate::watch::WatchRequest>),
}

fn has_subresource(resource: &Resource, name: &str) -> bool {
    match name {
        "status" => resource.status,
        "finalize" => resource.is("", "Namespace"),
        _ => false,
    }
}

fn verb(request: &Request, target: &Target, call: &Call) -> &'static str {
    match (request.method.as_str(), target.name.is_empty()) {
        ("GET", _) if call.parameters.is_true("watch") => "watch",
        ("GET", true) => "list",
        ("GET", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "deletecollection",
        _ => "delete",
    }
}

fn media_type(header: &str) -> String {
    header.split(';').next().unwrap_or_default().trim().to_lowercase()
}

fn respond(status: u16, body: &Value, changes: Vec<Change>) -> Answer {
    Answer::Response {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.to_string().into_bytes(),
        changes,
    }
}

fn refused(refusal: &Refusal, changes: Vec<Change>) -> Answer {
    if !refusal.plain {
        return respond(refusal.code, &refusal.body(), changes);
    }
    Answer::Response {
        status: refusal.code,
        headers: vec![("content-type".into(), "text/plain; charset=utf-8".into())],
        body: refusal.message.clone().into_bytes(),
        changes,
    }
}
