//! Steps about the serving certificates that operator-controller issues for webhooks.

use anyhow::Context as _;
use cucumber::{then, when};
use serde_json::{Value, json};

use crate::world::OlmWorld;

/// Renewal time of a revision's certificates.
const RENEWAL: &str = "olm.operatorframework.io/webhook-certificates-renewal";
const FINGERPRINT: &str = "olm.operatorframework.io/serving-certificate";

/// A serving certificate and its trust.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Certificate {
    /// Current certificate, base64 of PEM.
    current: String,
    /// Next certificate.
    next: String,
    /// Authorities in the Secret.
    authorities: String,
    /// Authorities that the API server trusts for the validating webhook, and for the conversion.
    trusted: [String; 2],
    /// Fingerprint of the current certificate, on the pods.
    fingerprint: String,
}

async fn read(world: &OlmWorld) -> anyhow::Result<Certificate> {
    let id = &world.id;
    let get = async |reference: String| -> anyhow::Result<Value> {
        let found = world.cluster().get(&reference, &world.namespace()).await?;
        let found = found.with_context(|| format!("{reference} is not there"))?;
        Ok(serde_json::to_value(found)?)
    };
    let text = |object: &Value, pointer: &str| -> anyhow::Result<String> {
        let found = object.pointer(pointer).and_then(Value::as_str);
        Ok(found
            .with_context(|| format!("no {pointer} in {object}"))?
            .to_owned())
    };
    let secret = get(format!("secret/test-operator-{id}-service-cert")).await?;
    let webhook = get(format!(
        "validatingwebhookconfiguration/check.e2e-{id}.example.com"
    ))
    .await?;
    let crd = get(format!("customresourcedefinition/tests.e2e-{id}.example.com")).await?;
    let deployment = get(format!("deployment/test-operator-{id}")).await?;
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    Ok(Certificate {
        current: text(&secret, "/data/tls.crt")?,
        next: text(&secret, "/data/next.crt")?,
        authorities: text(&secret, "/data/ca.crt")?,
        trusted: [
            text(&webhook, "/webhooks/0/clientConfig/caBundle")?,
            text(&crd, "/spec/conversion/webhook/clientConfig/caBundle")?,
        ],
        fingerprint: annotations[FINGERPRINT]
            .as_str()
            .context("no fingerprint")?
            .to_owned(),
    })
}

#[then("the serving certificate is trusted by its webhooks")]
async fn trusted(world: &mut OlmWorld) {
    let seen = world
        .eventually("the webhooks to trust their certificate", async || {
            let seen = read(world).await?;
            anyhow::ensure!(
                seen.trusted.iter().all(|trusted| *trusted == seen.authorities),
                "{seen:?}"
            );
            Ok(seen)
        })
        .await;
    world.certificate = Some(seen);
}

#[when("the serving certificate is due for renewal")]
async fn due(world: &mut OlmWorld) -> anyhow::Result<()> {
    // After years, both certificates would be issued anew.
    let due = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1)).to_string();
    let past = json!({"metadata": {"annotations": {RENEWAL: due}}});
    let revision = format!("clusterobjectset/{}-1", world.name());
    world.cluster().merge(&revision, "", &past).await?;
    // Without this change the reconcile would follow within hours.
    let extension = format!("clusterextension/{}", world.name());
    let touched = json!({"spec": {"progressDeadlineMinutes": 30}});
    world.cluster().merge(&extension, "", &touched).await
}

#[then("the next certificate is in use and trusted together with the previous one")]
async fn renewed(world: &mut OlmWorld) -> anyhow::Result<()> {
    let before = world
        .certificate
        .clone()
        .context("no certificate was seen before")?;
    let seen = world
        .eventually("the next certificate to be in use", async || {
            let seen = read(world).await?;
            anyhow::ensure!(seen.current == before.next, "{seen:?}");
            anyhow::ensure!(
                seen.trusted.iter().all(|trusted| *trusted == seen.authorities),
                "{seen:?}"
            );
            anyhow::ensure!(
                seen.fingerprint != before.fingerprint,
                "the pods have not changed"
            );
            Ok(seen)
        })
        .await;
    anyhow::ensure!(seen.next != before.next, "no other certificate was prepared");
    anyhow::ensure!(
        seen.authorities != before.authorities,
        "no other authority was prepared"
    );
    world.certificate = Some(seen);
    Ok(())
}

#[then("the ClusterExtension's objects are no longer written")]
async fn at_rest(world: &mut OlmWorld) {
    world
        .eventually("nothing to be written", async || {
            let before = versions(world).await?;
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            let after = versions(world).await?;
            anyhow::ensure!(before == after, "{before:?} became {after:?}");
            Ok(())
        })
        .await;
}

/// Returns the resource versions of the extension, its newest revision, and the certificate's Secret.
async fn versions(world: &OlmWorld) -> anyhow::Result<Vec<Option<String>>> {
    let name = world.name();
    let mut out = Vec::new();
    for reference in [
        format!("clusterextension/{name}"),
        format!("clusterobjectset/{name}-2"),
        format!("secret/test-operator-{}-service-cert", world.id),
        format!("customresourcedefinition/tests.e2e-{}.example.com", world.id),
    ] {
        let found = world.cluster().get(&reference, &world.namespace()).await?;
        out.push(
            found
                .with_context(|| format!("{reference} is not there"))?
                .metadata
                .resource_version,
        );
    }
    Ok(out)
}
