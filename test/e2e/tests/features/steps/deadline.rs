//! Steps about the progress deadline. Its minimum of ten minutes is too long for a test, so the steps change the
//! schema.

use anyhow::Context as _;
use cucumber::given;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use crate::world::OlmWorld;

/// Waits until the API server uses the changed schema; the schema of each kind changes only once in a run.
#[given(
    regex = r"^min value for (ClusterExtension|ClusterObjectSet) \.spec\.progressDeadlineMinutes is set to (\d+)$"
)]
async fn minimum(world: &mut OlmWorld, kind: String, minutes: i64) -> anyhow::Result<()> {
    let client = world.cluster().client();
    let plural = format!("{}s", kind.to_lowercase());
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("{plural}.olm.operatorframework.io");
    let mut crd = serde_json::to_value(crds.get(&name).await?)?;
    let field =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/progressDeadlineMinutes/minimum";
    let field = crd.pointer_mut(field).context("the schema has no such field")?;
    if field.as_f64() != json!(minutes).as_f64() {
        *field = json!(minutes);
        let patch = json!({"spec": {"versions": crd["spec"]["versions"]}});
        crds.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
    }
    let object = probe(world, &kind, minutes);
    world
        .eventually(&format!("{kind} to take {minutes} minutes"), async || {
            try_out(&client, &kind, &object).await
        })
        .await;
    Ok(())
}

fn probe(world: &OlmWorld, kind: &str, minutes: i64) -> Value {
    let spec = if kind == "ClusterExtension" {
        json!({"namespace": "default", "progressDeadlineMinutes": minutes,
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "any"}}})
    } else {
        json!({"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "progressDeadlineMinutes": minutes})
    };
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": kind,
        "metadata": {"name": format!("minimum-{}", world.id)}, "spec": spec})
}

/// Validates the object with a dry run.
async fn try_out(client: &Client, kind: &str, object: &Value) -> anyhow::Result<()> {
    let kind = ApiResource {
        group: "olm.operatorframework.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "olm.operatorframework.io/v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let answer = api
        .patch(name, &PatchParams::apply("e2e").dry_run(), &Patch::Apply(object))
        .await;
    match answer {
        Err(error) if error.to_string().contains("progressDeadlineMinutes") => Err(error.into()),
        _ => Ok(()),
    }
}
