//! Scenarios: sequences of steps of users, and the objects of the small world on which they run.

pub(crate) mod helm;
mod others;
mod settings;

use olm_world::{Request, User, World};
use serde_json::{Value, json};

use crate::content::{BETA, FULL, OLD};
use crate::model::PRIORITIES;
use crate::user::{self, Action};

/// Time at which a step happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After the cluster came to rest.
    AtRest,
    /// After the cluster came to rest and no connection hangs without an answer.
    Answered,
    /// After this number of calls since the last step.
    AfterCalls(usize),
}

/// A named sequence of steps.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name on the command line.
    pub name: &'static str,
    /// Steps: the time of each one, and its actions.
    pub steps: Vec<(When, Vec<Action>)>,
    /// Extension that upstream's former runtime has installed as a Helm release before the run.
    pub helm: Option<Value>,
    /// Number of leading steps that only prepare the cluster. No fault is tried before the step that follows them, because other
    /// scenarios cover such steps.
    pub prepared: usize,
}

impl Scenario {
    fn new(name: &'static str, steps: Vec<(When, Vec<Action>)>) -> Self {
        Self {
            name,
            steps,
            helm: None,
            prepared: 0,
        }
    }

    /// Returns the scenario with a number of leading steps that only prepare.
    fn after(self, prepared: usize) -> Self {
        Self { prepared, ..self }
    }
}

/// Returns all scenarios.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let mut all = usual();
    all.extend(others::all());
    all.extend(settings::all());
    all.extend(helm::all());
    all
}

/// Returns the common scenarios: installations, upgrades, removals, drift, and catalogs that change.
#[expect(clippy::too_many_lines, reason = "a table")]
fn usual() -> Vec<Scenario> {
    use When::{AfterCalls, AtRest};
    let alpha = |version: &str| {
        Action::Apply(extension(
            "alpha",
            &json!({"packageName": "alpha", "version": version}),
            &json!({}),
        ))
    };
    let beta = || Action::Apply(extension("beta", &json!({"packageName": "beta"}), &json!({})));
    let object = |api_version: &str, kind: &str, name: &str| {
        json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "ops"}})
    };
    let catalog = |name: &str| json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name}});
    let scenario = Scenario::new;
    let changed_settings = {
        let mut settings = object("v1", "ConfigMap", "alpha-settings");
        settings["data"] = json!({"mode": "meddled"});
        settings
    };
    let config = json!({"configType": "Inline",
        "inline": {"deploymentConfig": {"env": [{"name": "MODE", "value": "loud"}]}}});
    let configured = extension(
        "beta",
        &json!({"packageName": "beta"}),
        &json!({"config": config}),
    );
    let rolling_back = json!({"progressDeadlineMinutes": 10, "rollout": {"onFailure": "RollBack"}});
    let edge = json!({"packageName": "alpha", "channels": ["edge"]});
    vec![
        scenario("install", vec![(AtRest, vec![alpha("1.0.0")])]),
        scenario(
            "upgrade",
            vec![(AtRest, vec![alpha("1.0.0")]), (AtRest, vec![alpha("1.1.0")])],
        ),
        scenario(
            "overtaken",
            vec![
                (AtRest, vec![alpha("1.0.0")]),
                (AtRest, vec![alpha("1.1.0")]),
                (AfterCalls(25), vec![alpha("2.0.0")]),
            ],
        ),
        scenario(
            "rollback",
            vec![
                (
                    AtRest,
                    vec![Action::Apply(extension(
                        "alpha",
                        &json!({"packageName": "alpha", "version": "1.1.0"}),
                        &rolling_back,
                    ))],
                ),
                (
                    AtRest,
                    vec![Action::Apply(extension("alpha", &edge, &rolling_back))],
                ),
            ],
        ),
        scenario(
            "guarded-upgrade",
            ["1.0.0", "1.1.0"]
                .map(|version| {
                    let source = json!({"packageName": "alpha", "version": version});
                    let spec = extension("alpha", &source, &rolling_back);
                    (AtRest, vec![Action::Apply(spec)])
                })
                .into(),
        ),
        scenario(
            "delete",
            vec![(AtRest, vec![alpha("1.1.0")]), (AtRest, vec![deleted("alpha")])],
        ),
        scenario(
            "delete-early",
            vec![
                (AtRest, vec![alpha("1.0.0")]),
                (AfterCalls(30), vec![deleted("alpha")]),
            ],
        ),
        scenario(
            "catalog-gone",
            vec![
                (AtRest, vec![alpha("1.0.0"), beta()]),
                (AtRest, vec![Action::Delete(catalog("first"))]),
                (AfterCalls(5), vec![Action::Delete(catalog("second"))]),
                // No catalog lists this version any more. The installed version stays, and its configuration can change.
                (AtRest, vec![alpha("1.1.0"), Action::Apply(configured)]),
            ],
        ),
        scenario(
            "drift",
            vec![
                (AtRest, vec![alpha("1.1.0")]),
                (
                    AtRest,
                    vec![
                        Action::Delete(object("apps/v1", "Deployment", "alpha")),
                        Action::Merge(changed_settings),
                    ],
                ),
                (
                    AfterCalls(3),
                    vec![Action::Delete(object("v1", "Service", "alpha"))],
                ),
            ],
        ),
        scenario(
            "two",
            vec![
                (AtRest, vec![alpha("1.0.0"), Action::Serve("first", OLD), beta()]),
                (AfterCalls(40), vec![Action::Serve("first", FULL)]),
                (AtRest, vec![deleted("beta"), alpha("1.1.0")]),
                (
                    AtRest,
                    vec![Action::Apply(extension(
                        "beta-again",
                        &json!({"packageName": "beta"}),
                        &json!({}),
                    ))],
                ),
            ],
        ),
        scenario(
            "catalog-moves",
            vec![
                (AtRest, vec![Action::Serve("first", OLD), alpha("<2.0.0"), beta()]),
                (AtRest, vec![Action::Serve("first", BETA)]),
                (AfterCalls(4), vec![Action::Serve("first", FULL)]),
            ],
        ),
    ]
}

/// Returns the action that deletes a ClusterExtension.
fn deleted(name: &str) -> Action {
    Action::Delete(
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": name}}),
    )
}

/// Returns a ClusterExtension with the account `installer` of the small world. `more` has fields of the spec, which win.
pub(crate) fn extension(name: &str, catalog: &Value, more: &Value) -> Value {
    let mut spec = json!({"namespace": "ops", "serviceAccount": {"name": "installer"},
        "source": {"sourceType": "Catalog", "catalog": catalog}});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name}, "spec": spec})
}

/// User name of operator-controller.
pub(crate) const CONTROLLER: &str =
    "system:serviceaccount:olmv1-system:operator-controller-controller-manager";

/// Returns an API server with the small world: the controllers' rights, a namespace, accounts, two catalogs, and an object of
/// others.
///
/// # Errors
/// The manifests of the controllers cannot be read.
pub(crate) fn small_world() -> anyhow::Result<World> {
    let mut world = World::with_olm_crds();
    let now = jiff::Timestamp::from_second(1_767_225_000)?;
    // Every real API server has this role.
    let admin = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "cluster-admin"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]});
    for object in [admin].iter().chain(&setup()?) {
        let path = format!("{}?fieldManager=setup", user::path_of(object));
        let mut request = user::apply(&path, object);
        request.user = User::admin();
        expect_success(&mut world, &request, now)?;
    }
    for (name, digest) in [("first", FULL), ("second", OLD)] {
        expect_success(&mut world, &user::request(&Action::Serve(name, digest)), now)?;
    }
    world.tick(now);
    Ok(world)
}

/// Returns the objects of the small world, without those that every API server has.
///
/// # Errors
/// The manifests of the controllers cannot be read.
pub(crate) fn setup() -> anyhow::Result<Vec<Value>> {
    let mut objects: Vec<Value> = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": "ops"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "ops"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "installer"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": "ops"}]}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": "ops"}, "data": {"of": "others"}}),
    ];
    let wanted = [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ];
    let manifests = olm_manifests::render(&[])?;
    objects.extend(
        manifests
            .into_iter()
            .filter(|object| wanted.iter().any(|kind| object["kind"] == *kind)),
    );
    for (name, priority) in PRIORITIES {
        objects.push(json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": name, "labels": {"olm.operatorframework.io/metadata.name": name}},
            "spec": {"priority": priority, "source": {"type": "Image", "image": {"ref": "registry.example.com/catalog:latest"}}}}));
    }
    Ok(objects)
}

fn expect_success(world: &mut World, request: &Request, now: jiff::Timestamp) -> anyhow::Result<()> {
    if let olm_world::Answer::Response { status, body, .. } = world.handle(request, now)
        && status >= 400
    {
        anyhow::bail!(
            "{} {}: {status} {}",
            request.method,
            request.path,
            String::from_utf8_lossy(&body)
        );
    }
    Ok(())
}
