//! Checks of the installed operator at work, and of a rolling update of the product itself.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::{SAMPLE, SYSTEM, apply, condition, get, is_ready, items, kubectl, pin, run};
use crate::content::{LAST, small_extensions, small_packages};
use crate::product::DEPLOYMENTS;

const LIMIT: Duration = Duration::from_mins(1);
/// Maximum time for the installation of the twenty small extensions.
const MANY_LIMIT: Duration = Duration::from_mins(2);

fn greet(text: &str) -> Result<String> {
    apply(&format!(
        "apiVersion: sample.olmv1-rs.example/v1\nkind: Greeting\nmetadata: {{name: hello, namespace: {SAMPLE}}}\n\
         spec: {{text: '{text}'}}\n"
    ))
}

/// Creates a Greeting that the webhook of the operator refuses. This shows that the API server trusts the certificate that
/// operator-controller has created for the webhook.
pub(crate) async fn refuses() -> Result<String> {
    // A pod is ready a moment before kube-proxy routes its Service to it.
    eventually(LIMIT, "the webhook refuses", async || match greet("") {
        Ok(_) => bail!("a greeting without a text was accepted"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(
                text.contains("denied the request: a greeting needs a text"),
                "{text}"
            );
            Ok(String::new())
        }
    })
    .await
}

/// Creates a Greeting and waits until the sample operator counts it.
pub(crate) async fn reconciles() -> Result<String> {
    greet("Hello")?;
    eventually(LIMIT, "the operator counts the greeting", async || {
        let said = get(&format!("-n {SAMPLE} greeting hello"))?["status"]["said"].take();
        ensure!(said == 1, "it was said {said} times");
        Ok(())
    })
    .await?;
    let log = kubectl(&format!("-n {SAMPLE} logs deployment/sample-operator"))?;
    ensure!(log.contains("sample/hello: Hello"), "the log is {log}");
    Ok(String::new())
}

/// Upgrades to version 1.1.0 and waits until only the new pod is left.
pub(crate) async fn upgrades() -> Result<String> {
    let before = get(&format!("-n {SAMPLE} pods"))?;
    pin("1.1.0")?;
    eventually(LIMIT, "1.1.0 is Ready", async || is_ready("1.1.0")).await?;
    let after = get(&format!("-n {SAMPLE} pods"))?;
    let names = |list: &Value| {
        items(list)
            .map(|pod| pod["metadata"]["name"].to_string())
            .collect::<BTreeSet<_>>()
    };
    ensure!(
        !names(&after).is_subset(&names(&before)),
        "no new pod: {:?}",
        names(&after)
    );
    Ok(String::new())
}

/// Restarts both Deployments while twenty extensions are installed and the content of a catalog is read.
pub(crate) async fn rolling_update() -> Result<String> {
    let authority =
        fs::canonicalize(std::env::var("RUN").context("RUN is not set")?)?.join("catalogd-ca.crt");
    let secret = get(&format!("-n {SYSTEM} secret catalogd-service-own-cert"))?;
    let encoded = secret["data"]["ca.crt"].as_str().context("no ca.crt")?;
    fs::write(&authority, run("base64", &["--decode"], encoded)?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let reader = {
        let (stop, authority) = (Arc::clone(&stop), authority.display().to_string());
        std::thread::spawn(move || read_content(&authority, &stop))
    };
    let rolled = async {
        apply(&small_extensions())?;
        for deployment in DEPLOYMENTS {
            kubectl(&format!("-n {SYSTEM} rollout restart deployment/{deployment}"))?;
            kubectl(&format!(
                "-n {SYSTEM} rollout status deployment/{deployment} --timeout=120s"
            ))?;
        }
        // A rollout ends when the new pods are ready. The old pods stop later.
        eventually(LIMIT, "the old pods are gone", async || {
            let pods = items(&get(&format!("-n {SYSTEM} pods"))?).count();
            ensure!(pods == 2, "there are {pods} pods");
            Ok(())
        })
        .await?;
        pin(LAST)?;
        eventually(LIMIT, "the new pods upgrade the extension", async || {
            is_ready(LAST)
        })
        .await?;
        small_are_ready().await
    }
    .await;
    stop.store(true, Ordering::Relaxed);
    let (read, failed) = reader.join().map_err(|_| anyhow::anyhow!("the reader died"))?;
    rolled?;
    ensure!(
        failed.is_empty(),
        "{} of {read} reads failed, such as: {}",
        failed.len(),
        failed[0]
    );
    delete_small()?;
    Ok(format!("{read} reads, none failed"))
}

/// Waits until all small extensions are Ready.
pub(crate) async fn small_are_ready() -> Result<()> {
    eventually(MANY_LIMIT, "the small extensions are Ready", async || {
        let list = get("clusterextensions")?;
        for name in small_packages() {
            let found = items(&list).find(|extension| extension["metadata"]["name"] == name.as_str());
            let [status, reason, message] = found.map_or([""; 3], |found| condition(found, "Ready"));
            ensure!(status == "True", "{name} is {status} ({reason}: {message})");
        }
        Ok(())
    })
    .await
}

/// Deletes the small extensions and their namespaces.
pub(crate) fn delete_small() -> Result<()> {
    let names: Vec<String> = small_packages().collect();
    let names = names.join(" ");
    kubectl(&format!("delete clusterextensions {names} --timeout=120s"))?;
    kubectl(&format!("delete namespaces {names} --timeout=120s")).map(drop)
}

/// Reads the content of the catalog on new connections until `stop` is true. Returns the number of reads, and the errors of
/// failed ones.
fn read_content(authority: &str, stop: &AtomicBool) -> (u32, Vec<String>) {
    let url = format!("https://catalogd-service.{SYSTEM}.svc/catalogs/{SAMPLE}/api/v1/all");
    let args = [
        "--silent",
        "--show-error",
        "--fail",
        "--max-time",
        "10",
        "--cacert",
        authority,
        "--output",
        "/dev/null",
        &url,
    ];
    let (mut read, mut failed) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        read += 1;
        if let Err(error) = run("curl", &args, "") {
            failed.push(format!("{error:#}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    (read, failed)
}
