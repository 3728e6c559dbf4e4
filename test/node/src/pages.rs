//! Checks of the web pages of `config/optional/ui` on the node: readers see an installed extension with the rights of their own
//! tokens.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use olm_harness::eventually;
use tempfile::NamedTempFile;

use crate::cluster::{SAMPLE, SYSTEM, apply, change, condition, get, is_ready, items, kubectl, run};
use crate::content::{LAST, NAME, REGISTRY};
use crate::product::Images;
use crate::report::Report;

const FOLDER: &str = "config/optional/ui";
const IMAGE: &str = "olmv1/kubectl-olm:dev";
/// Name of the Service and the Deployment of the pages.
const PAGES: &str = "olmv1-ui";
const LIMIT: Duration = Duration::from_mins(1);
/// Bindings of a reader, who may read all pages except plans of changes.
const READER: [&str; 2] = [
    "clusterrolebinding ui-reader --clusterrole=olmv1-ui-reader",
    "-n default rolebinding ui-reader --role=olmv1-ui-reader",
];
/// Bindings of an administrator.
const ADMINISTRATOR: [&str; 1] = ["clusterrolebinding ui-administrator --clusterrole=cluster-admin"];

/// Deploys the pages beside the product, reads them, and removes them.
pub(crate) async fn check_all(folder: &str, images: &Images, report: &mut Report) {
    let title = format!("the web pages beside {folder} show what the token of each reader may read");
    let shown = async {
        let manifests = render(images)?;
        let shown = shown(&manifests).await;
        let removed = remove(&manifests);
        let remark = shown?;
        removed.map(|()| remark)
    };
    report.check(&title, shown).await;
}

/// Renders the manifests with the image of this build from the registry of the node.
fn render(images: &Images) -> Result<String> {
    let rendered = kubectl(&format!("kustomize {FOLDER}"))?;
    ensure!(rendered.contains(IMAGE), "{FOLDER} does not run {IMAGE}");
    let argument = "- ui-server\n";
    ensure!(
        rendered.matches(argument).count() == 1,
        "{FOLDER} has another command"
    );
    let flag = format!("{argument}        - --plain-http-registry={REGISTRY}\n");
    Ok(rendered
        .replace(IMAGE, &images.kubectl_olm)
        .replace(argument, &flag))
}

/// Checks the pages as readers with and without rights.
async fn shown(manifests: &str) -> Result<String> {
    apply(manifests)?;
    kubectl(&format!(
        "-n {SYSTEM} rollout status deployment/{PAGES} --timeout=120s"
    ))?;
    let pages = Pages::find()?;
    let reader = account("ui-reader", &READER)?;
    let stranger = account("ui-stranger", &[])?;
    let administrator = account("ui-administrator", &ADMINISTRATOR)?;

    let extension = format!("/extensions/{SAMPLE}.html");
    let package = format!("/packages/{SAMPLE}/{NAME}.html");
    // Right after the pod became ready, its Service may not reach it yet.
    eventually(LIMIT, "the pages answer", async || {
        pages.has(&reader, "/extensions.html", 200, &[SAMPLE, "1.0.0", "Ready"])
    })
    .await?;
    pages.has("", &extension, 401, &["Sign in"])?;
    pages.has(&reader, &extension, 200, &["1.0.0", "sample-operator"])?;
    pages.has(&reader, &package, 200, &[NAME, LAST])?;
    pages.has(&administrator, &extension, 200, &["Deployment", "Available"])?;
    let foreign = pages.answer(&stranger, &package)?.1;
    ensure!(!foreign.contains(LAST), "a stranger reads the catalog: {foreign}");

    change_that_waits(&pages, &administrator, &reader).await?;

    let pods = get(&format!(
        "-n {SYSTEM} pods --selector app.kubernetes.io/name={PAGES}"
    ))?;
    let restarts: Vec<_> = items(&pods)
        .map(|pod| &pod["status"]["containerStatuses"][0]["restartCount"])
        .collect();
    ensure!(restarts == [0], "the restarts of the pods are {restarts:?}");
    Ok(String::new())
}

/// Checks the page about the plan of an upgrade that waits for approval. The server of the pages pulls the bundle, and its dry
/// runs have the rights of the reader.
async fn change_that_waits(pages: &Pages, administrator: &str, reader: &str) -> Result<()> {
    change(r#"{"rollout":{"approval":"Manual"},"source":{"catalog":{"version":"1.1.0"}}}"#)?;
    let plan = format!("/plans/{SAMPLE}.html");
    let checked = eventually(LIMIT, "the plan is shown", async || {
        let extension = get(&format!("clusterextension {SAMPLE}"))?;
        let [_, reason, message] = condition(&extension, "Progressing");
        ensure!(reason == "AwaitingApproval", "{reason}: {message}");
        pages.has(administrator, &plan, 200, &["1.1.0", "Deployment"])?;
        let extension = format!("/extensions/{SAMPLE}.html");
        pages.has(reader, &extension, 200, &["AwaitingApproval", "1.1.0"])?;
        let refused = pages.answer(reader, &plan)?.1;
        ensure!(
            refused.contains("forbidden"),
            "the plan says nothing of missing rights: {refused}"
        );
        Ok(())
    })
    .await;
    let undone = change(r#"{"rollout":null,"source":{"catalog":{"version":"1.0.0"}}}"#);
    checked.and(undone)?;
    eventually(LIMIT, "the extension is Ready", async || is_ready("1.0.0")).await
}

/// Removes the pages and the accounts of their readers.
fn remove(manifests: &str) -> Result<()> {
    let args = ["delete", "--ignore-not-found", "--timeout=60s", "-f", "-"];
    run("kubectl", &args, manifests)?;
    kubectl("delete clusterrolebindings ui-reader ui-administrator --ignore-not-found")?;
    kubectl("-n default delete rolebinding ui-reader --ignore-not-found")?;
    kubectl("-n default delete serviceaccounts ui-reader ui-stranger ui-administrator --ignore-not-found")
        .map(drop)
}

/// Creates an account in namespace default with these bindings, and returns its token.
fn account(name: &str, bindings: &[&str]) -> Result<String> {
    kubectl(&format!("-n default create serviceaccount {name}"))?;
    for binding in bindings {
        kubectl(&format!("create {binding} --serviceaccount=default:{name}"))?;
    }
    let token = kubectl(&format!("-n default create token {name}"))?;
    Ok(token.trim().to_owned())
}

/// Client of the server of the pages, inside the cluster.
struct Pages {
    authority: NamedTempFile,
}

impl Pages {
    /// Reads the certificate authority from the Secret that the server has written.
    fn find() -> Result<Self> {
        let own = get(&format!("-n {SYSTEM} secret {PAGES}-own-cert"))?;
        let encoded = own["data"]["ca.crt"]
            .as_str()
            .context("the Secret has no authority")?;
        let authority = NamedTempFile::new()?;
        std::fs::write(authority.path(), run("base64", &["--decode"], encoded)?)?;
        Ok(Self { authority })
    }

    /// Requests a page with a token. Returns the status and the text. With an empty token, the request has none.
    fn answer(&self, token: &str, path: &str) -> Result<(u16, String)> {
        let authority = self.authority.path().display().to_string();
        let url = format!("https://{PAGES}.{SYSTEM}.svc{path}");
        let mut args = vec!["--silent", "--show-error", "--max-time", "60", "--cacert"];
        args.extend([authority.as_str(), "--write-out", "\n%{http_code}", url.as_str()]);
        // The header is passed on standard input, because every process of the node could read an argument.
        let header = format!("Authorization: Bearer {token}\n");
        if !token.is_empty() {
            args.extend(["--header", "@-"]);
        }
        let said = run("curl", &args, if token.is_empty() { "" } else { &header })?;
        let (text, status) = said.rsplit_once('\n').context("curl says no status")?;
        Ok((status.parse()?, text.to_owned()))
    }

    /// Fails unless a page has this status and contains all of the texts.
    fn has(&self, token: &str, path: &str, expected: u16, texts: &[&str]) -> Result<()> {
        let (status, page) = self.answer(token, path)?;
        ensure!(status == expected, "{path}: {status}: {page}");
        for text in texts {
            ensure!(page.contains(text), "{path} has no {text:?}: {page}");
        }
        Ok(())
    }
}
