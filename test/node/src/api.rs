//! Check of an extension whose bundle serves an API and suggests its namespace.

use std::time::Duration;

use anyhow::{Result, ensure};
use olm_harness::eventually;

use crate::cluster::{apply, condition, get, items, kubectl};
use crate::content::{WORDS, WORDS_NAMESPACE};

const LIMIT: Duration = Duration::from_mins(1);

/// Installs the extension without `spec.namespace`, and reads its API as a client that discovers it. Then deletes the extension
/// while its namespace contains an object of somebody else.
pub(crate) async fn served() -> Result<String> {
    apply(&format!(
        "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {{name: {WORDS}}}\nspec:\n  source:\n    \
         sourceType: Catalog\n    catalog: {{packageName: {WORDS}}}\n"
    ))?;
    eventually(LIMIT, "the extension is Ready", async || {
        let extension = get(&format!("clusterextension {WORDS}"))?;
        let [status, reason, message] = condition(&extension, "Ready");
        let progressing = condition(&extension, "Progressing");
        ensure!(
            status == "True",
            "Ready is {status} ({reason}: {message}), Progressing is {progressing:?}"
        );
        Ok(())
    })
    .await?;
    let extension = get(&format!("clusterextension {WORDS}"))?;
    let namespace = &extension["status"]["install"]["namespace"];
    ensure!(namespace == WORDS_NAMESPACE, "the namespace is {namespace}");
    // The API is read at once, without a retry: a Ready extension must be usable.
    let words = get("words")?;
    let names: Vec<_> = items(&words).map(|word| &word["metadata"]["name"]).collect();
    ensure!(names == ["hello"], "the words are {words}");

    kubectl(&format!("-n {WORDS_NAMESPACE} create configmap notes"))?;
    kubectl(&format!("delete clusterextension {WORDS} --timeout=60s"))?;
    let left = get(&format!("-n {WORDS_NAMESPACE} deployments,services,configmaps"))?;
    let left: Vec<_> = items(&left).map(|object| &object["metadata"]["name"]).collect();
    ensure!(
        left == ["kube-root-ca.crt", "notes"],
        "the removed extension left {left:?}"
    );
    let registered = kubectl("get apiservice v1.words.olmv1-rs.example");
    ensure!(registered.is_err(), "the APIService is still there");
    kubectl(&format!("delete namespace {WORDS_NAMESPACE} --timeout=60s"))?;
    Ok(String::new())
}
