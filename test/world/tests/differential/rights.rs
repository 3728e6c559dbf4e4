//! Sequences of a user with few rights: random roles and bindings, and the user's requests to both servers.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::generate::object;
use crate::kinds::{KINDS, Kind};
use crate::rng::Rng;
use crate::run::{Comparison, Difference, Pair, ask_real, ask_world};
use crate::step::{Seen, Step};

/// Limit for the real server's authorizer to see the roles and bindings.
const LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
const RBAC: &str = "rbac.authorization.k8s.io";
const NAMES: [&str; 2] = ["a", "b"];
const VERBS: [&str; 6] = ["get", "list", "create", "update", "patch", "delete"];
/// Kinds of the user's requests.
const ASKED: [&str; 5] = ["ConfigMap", "Secret", "Lease", "Thing", "ClusterCatalog"];
const USER: &str = "{w}-user";
const ACCOUNT: &str = "system:serviceaccount:{ns}:t-a";

/// Sequence of one user.
pub(crate) struct Rights {
    /// Roles, bindings and objects, which the administrator makes.
    setup: Vec<Step>,
    /// Requests of the user.
    requests: Vec<Step>,
    /// The verb and kind of each request of the user.
    asked: Vec<(&'static str, Kind, &'static str)>,
    user: &'static str,
}

impl Rights {
    /// Returns the sequence of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0419_4752);
        let kinds: Vec<Kind> = KINDS
            .iter()
            .filter(|kind| ASKED.contains(&kind.kind))
            .copied()
            .collect();
        let user = rng.pick(&[USER, ACCOUNT]);
        let mut setup = Vec::new();
        for name in NAMES {
            let wide = rng.chance(30);
            setup.push(role(&mut rng, name, wide, &kinds));
            setup.push(binding(&mut rng, name, wide));
        }
        for kind in &kinds {
            if rng.chance(60) {
                setup.push(Step::new("POST", kind.list()).body(object(&mut rng, kind, "a")));
            }
        }
        let (mut requests, mut asked) = (Vec::new(), Vec::new());
        for _ in 0..4 + rng.below(8) {
            let (kind, verb, name) = (rng.pick(&kinds), rng.pick(&VERBS), rng.pick(&NAMES));
            let mut step = request(&mut rng, &kind, verb, name);
            step.impersonate = Some(user.to_owned());
            requests.push(step);
            asked.push((verb, kind, name));
        }
        Self {
            setup,
            requests,
            asked,
            user,
        }
    }

    /// Returns all requests in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.setup.iter().chain(&self.requests).cloned().collect()
    }

    /// Returns the questions about the rights that the requests need.
    fn reviews(&self) -> Vec<Step> {
        let ask = |(verb, kind, name): &(&str, Kind, &str)| {
            let mut attributes = json!({"verb": verb, "group": kind.group, "resource": kind.plural});
            if kind.namespaced {
                attributes["namespace"] = json!("{ns}");
            }
            if !matches!(*verb, "list" | "create") {
                attributes["name"] = json!(kind.name(name));
            }
            let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes}});
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            let mut step = Step::new("POST", path).body(body);
            step.impersonate = Some(self.user.to_owned());
            step
        };
        self.asked.iter().map(ask).collect()
    }
}

fn role(rng: &mut Rng, name: &str, wide: bool, kinds: &[Kind]) -> Step {
    let rule = |rng: &mut Rng| {
        let kind = rng.pick(kinds);
        let group = if rng.chance(80) { kind.group } else { "*" };
        let resource = if rng.chance(85) { kind.plural } else { "*" };
        let mut verbs = vec![rng.pick(&VERBS), rng.pick(&VERBS), rng.pick(&VERBS)];
        if rng.chance(15) {
            verbs = vec!["*"];
        }
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        if rng.chance(20) {
            rule["resourceNames"] = json!([kind.name("a")]);
        }
        if rng.chance(10) {
            rule["resources"] = json!([format!("{}/status", kind.plural)]);
        }
        rule
    };
    let rules: Vec<Value> = (0..=rng.below(4)).map(|_| rule(rng)).collect();
    let kind = if wide { "ClusterRole" } else { "Role" };
    let object = json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind,
        "metadata": {"name": role_name(name, wide)}, "rules": rules});
    let list = if wide {
        "clusterroles"
    } else {
        "namespaces/{ns}/roles"
    };
    Step::new("POST", format!("/apis/{RBAC}/v1/{list}")).body(object)
}

fn role_name(name: &str, wide: bool) -> String {
    if wide {
        format!("{{w}}-{name}")
    } else {
        format!("t-{name}")
    }
}

fn binding(rng: &mut Rng, name: &str, wide: bool) -> Step {
    let subject = rng.pick(&[
        json!({"kind": "User", "name": USER}),
        json!({"kind": "User", "name": USER}),
        json!({"kind": "ServiceAccount", "name": "t-a", "namespace": "{ns}"}),
        json!({"kind": "Group", "name": "system:authenticated"}),
        json!({"kind": "Group", "name": "system:serviceaccounts:{ns}"}),
        json!({"kind": "User", "name": "nobody"}),
    ]);
    let kind = if wide { "ClusterRole" } else { "Role" };
    let object = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
        "metadata": {"name": format!("t-{name}")}, "subjects": [subject],
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name(name, wide)}});
    Step::new("POST", format!("/apis/{RBAC}/v1/namespaces/{{ns}}/rolebindings")).body(object)
}

fn request(rng: &mut Rng, kind: &Kind, verb: &str, name: &str) -> Step {
    let path = kind.path(name);
    match verb {
        "get" => Step::new("GET", path),
        "list" => Step::new("GET", kind.list()),
        "create" => Step::new("POST", kind.list()).body(object(rng, kind, name)),
        "update" => {
            let mut body = object(rng, kind, name);
            body["metadata"]["resourceVersion"] = json!(format!("${{rv:{}/{name}}}", kind.kind));
            Step::new("PUT", path).body(body)
        }
        "delete" => Step::new("DELETE", path).body(json!({"propagationPolicy": "Background"})),
        _ if rng.chance(50) => {
            let mut step = Step::new("PATCH", path).body(json!({"metadata": {"labels": {"l1": "x"}}}));
            step.content_type = "application/merge-patch+json";
            step
        }
        _ => {
            let mut step = Step::new("PATCH", path)
                .body(object(rng, kind, name))
                .query("fieldManager", "m1");
            step.content_type = "application/apply-patch+yaml";
            step
        }
    }
}

impl Pair {
    /// Runs the sequence of a user on both servers and returns the first difference.
    pub(crate) async fn rights(&self, rights: &Rights) -> Result<Option<Difference>> {
        let steps = rights.steps();
        let mut comparison = self.comparison();
        let result = self.compared_rights(&mut comparison, rights, &steps).await;
        self.clean(&comparison.world, &steps, None, result).await
    }

    async fn compared_rights(
        &self,
        comparison: &mut Comparison,
        rights: &Rights,
        steps: &[Step],
    ) -> Result<Option<Difference>> {
        for (at, step) in steps.iter().enumerate() {
            if at == rights.setup.len()
                && let Some(lines) = self
                    .reviewed(rights, &mut comparison.world, &comparison.seen_world)
                    .await?
            {
                return Ok(Some(Difference { at, lines }));
            }
            if let Some(lines) = comparison.step(self, step).await? {
                return Ok(Some(Difference { at, lines }));
            }
        }
        Ok(None)
    }

    /// Waits until the real server answers all questions about rights as the world does.
    async fn reviewed(
        &self,
        rights: &Rights,
        world: &mut olm_world::World,
        seen: &Seen,
    ) -> Result<Option<Vec<String>>> {
        let allowed = |body: &Value| body.pointer("/status/allowed").cloned();
        let started = tokio::time::Instant::now();
        for step in rights.reviews() {
            let ours = allowed(&ask_world(world, &step, seen).body);
            loop {
                let theirs = ask_real(&self.client, &step, seen).await?;
                if allowed(&theirs.body) == ours && ours.is_some() {
                    break;
                }
                if started.elapsed() > LIMIT {
                    let why = format!("the world has {ours:?}, kube-apiserver {}", theirs.body);
                    return Ok(Some(vec![step.to_string(), why]));
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(None)
    }
}
