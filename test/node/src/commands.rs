//! Checks of `kubectl olm` on the node: installation, diagnosis, support bundle and removal of the controllers.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::{Ended, SYSTEM, apply, delete_sample, get, is_ready, items, kubectl, olm, run};
use crate::content::{Access, Content, REGISTRY, SECURE_REGISTRY};
use crate::processes::{PROGRAMS, processes};
use crate::product::{DEPLOYMENTS, Images, rolled_out, trust_registry};
use crate::report::Report;

/// Folder of the commands, by which `ONLY` selects these checks.
pub(crate) const FOLDER: &str = "cmd/kubectl-olm";
const LIMIT: Duration = Duration::from_mins(2);
/// Maximum duration of a diagnosis.
const DIAGNOSIS: Duration = Duration::from_secs(10);
/// Value of a Secret that must not be in a support bundle.
const CANARY: &str = "canary-in-a-mine-5f1e";

/// Runs the checks of all commands. Each check starts from the state that the one before left.
pub(crate) async fn check_all(images: &Images, content: &Content, report: &mut Report) {
    let title = "kubectl olm install-controllers installs from nothing";
    if report.check(title, install(images, content)).await {
        let title = "kubectl olm doctor finds nothing on a healthy node";
        report.check(title, async { healthy() }).await;
        let title = "kubectl olm doctor names the next step while catalogd has no replicas";
        report.check(title, without_catalogd()).await;
        let title = "kubectl olm support-bundle has the logs of all pods and no secret";
        report.check(title, async { support_bundle() }).await;
        let title = "kubectl olm install-controllers says why an upgrade is stuck, and the next run mends it";
        report.check(title, stuck_upgrade(images)).await;
    }
    let title = "kubectl olm uninstall-controllers removes everything";
    report.check(title, async { uninstall() }).await;
}

/// Fails unless the command ended with this exit code and its output contains all parts.
fn expect(ended: &Ended, code: i32, parts: &[&str]) -> Result<()> {
    ensure!(ended.code == Some(code), "expected exit code {code}: {ended:?}");
    for part in parts {
        ensure!(
            ended.out.contains(part) || ended.err.contains(part),
            "{part:?} is not in {ended:?}"
        );
    }
    Ok(())
}

/// Returns the command line that installs the images of this build, with another image of catalogd if one is given.
fn install_line(images: &Images, catalogd: Option<&str>, timeout: &str) -> String {
    format!(
        "install-controllers --overlay internal-registry --internal-registry {SECURE_REGISTRY} \
         --catalogd-image {} --operator-controller-image {} --timeout {timeout}",
        catalogd.unwrap_or(&images.catalogd),
        images.operator_controller
    )
}

/// Installs the controllers, and checks that an extension becomes Ready.
async fn install(images: &Images, content: &Content) -> Result<String> {
    kubectl(&format!("create namespace {SYSTEM}"))?;
    trust_registry()?;
    let started = Instant::now();
    let ended = olm(&install_line(images, None, "2m"))?;
    let installed = started.elapsed();
    let said = [
        "The controllers are installed and available: ",
        &images.catalogd,
        "Next:",
    ];
    expect(&ended, 0, &said)?;
    rolled_out()?;
    apply(&content.manifests(Access::Https, false))?;
    eventually(LIMIT, "the extension is Ready", async || is_ready("1.0.0")).await?;
    Ok(format!(
        "ended after {:.1} s, first extension Ready after {:.1} s",
        installed.as_secs_f64(),
        started.elapsed().as_secs_f64()
    ))
}

/// Fails if the doctor has a finding, except that the disk of this machine is almost full.
fn healthy() -> Result<String> {
    let ended = olm("doctor -o json")?;
    let mut findings = findings(&ended)?;
    let found = findings.len();
    ensure!(ended.code == Some(i32::from(found > 0)), "{ended:?}");
    findings.retain(|finding| {
        let cause = finding["cause"].as_str().unwrap_or_default();
        !cause.starts_with("the disk of volume")
    });
    ensure!(findings.is_empty(), "the findings are {findings:?}");
    Ok(if found > 0 {
        "only that the disk of this machine is almost full".to_owned()
    } else {
        String::new()
    })
}

fn findings(ended: &Ended) -> Result<Vec<Value>> {
    let mut said: Value =
        serde_json::from_str(&ended.out).with_context(|| format!("no findings are in {ended:?}"))?;
    let findings = said["findings"].as_array_mut().context("no findings")?;
    Ok(std::mem::take(findings))
}

/// Checks the diagnosis while catalogd is scaled to 0 replicas, and scales it back to 1.
async fn without_catalogd() -> Result<String> {
    let [catalogd, _] = DEPLOYMENTS;
    kubectl(&format!("-n {SYSTEM} scale deployment {catalogd} --replicas=0"))?;
    let no_pod = eventually(LIMIT, "catalogd has no pod", async || {
        let running = processes(PROGRAMS[0])?.len();
        ensure!(running == 0, "{running} processes run");
        Ok(())
    });
    let diagnosed = async {
        no_pod.await?;
        let started = Instant::now();
        anyhow::Ok((olm("doctor -o json")?, started.elapsed()))
    };
    let diagnosed = diagnosed.await;
    kubectl(&format!("-n {SYSTEM} scale deployment {catalogd} --replicas=1"))?;
    let (ended, took) = diagnosed?;
    ensure!(ended.code == Some(1), "{ended:?}");
    // A missing catalogd must not delay the diagnosis.
    ensure!(took < DIAGNOSIS, "the diagnosis took {took:?}");
    let findings = findings(&ended)?;
    let next = |object: &str| {
        let found = findings.iter().find(|finding| finding["object"] == object);
        found.and_then(|finding| finding["next"].as_str())
    };
    let scale = format!("kubectl -n {SYSTEM} scale deployment/{catalogd} --replicas=1");
    ensure!(
        next(&format!("Deployment {SYSTEM}/{catalogd}")) == Some(&scale),
        "no finding says {scale:?}: {findings:?}"
    );
    ensure!(
        next("ClusterCatalog sample").is_some_and(|next| next.contains("check the pods of catalogd")),
        "no finding names the catalog: {findings:?}"
    );
    rolled_out()?;
    eventually(LIMIT, "the doctor finds nothing", async || healthy()).await?;
    Ok(format!(
        "{} findings after {:.1} s",
        findings.len(),
        took.as_secs_f64()
    ))
}

/// Collects a support bundle while secrets are in all places where a cluster has them, and checks that the bundle contains none
/// of them.
fn support_bundle() -> Result<String> {
    kubectl(&format!(
        "-n {SYSTEM} create secret generic canary --from-literal=password={CANARY}"
    ))?;
    let bundle = unpacked_bundle();
    kubectl(&format!("-n {SYSTEM} delete secret canary"))?;
    let folder = bundle?;
    let mut files = Vec::new();
    read_files(folder.path(), &mut files)?;
    let mut lines = 0;
    for pod in items(&get(&format!("-n {SYSTEM} pods"))?) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/logs/{name}/manager.log");
        let (_, log) = files
            .iter()
            .find(|(file, _)| file.ends_with(&path))
            .with_context(|| format!("the bundle has no {path}"))?;
        ensure!(
            log.contains("ClusterCatalog") || log.contains("ClusterExtension"),
            "{path} says {log:?}"
        );
        lines += log.lines().count();
    }
    for (what, secret) in secrets()? {
        let found = files.iter().find(|(_, text)| text.contains(&secret));
        ensure!(
            found.is_none(),
            "{what} is in {}",
            found.map_or("", |(file, _)| file)
        );
    }
    Ok(format!("{} files, {lines} lines of logs", files.len()))
}

/// Collects a support bundle and unpacks it.
fn unpacked_bundle() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bundle.tar.gz").display().to_string();
    expect(&olm(&format!("support-bundle -f {file}"))?, 0, &["wrote "])?;
    let target = folder.path().display().to_string();
    run("tar", &["-xzf", &file, "-C", &target], "")?;
    fs::remove_file(file)?;
    Ok(folder)
}

fn read_files(folder: &Path, files: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_files(&path, files)?;
        } else {
            files.push((path.display().to_string(), fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Returns the secrets of the cluster, each with a description: a value of a Secret as plain text and in base64, the private key
/// of catalogd, and the token of each pod.
fn secrets() -> Result<Vec<(String, String)>> {
    let mut secrets = vec![
        ("the value of a Secret".to_owned(), CANARY.to_owned()),
        (
            "the encoded value of a Secret".to_owned(),
            run("base64", &["--wrap=0"], CANARY)?,
        ),
    ];
    let own = get(&format!("-n {SYSTEM} secret catalogd-service-own-cert"))?;
    let encoded = own["data"]["tls.key"].as_str().context("no private key")?;
    let key = run("base64", &["--decode"], encoded)?;
    let line = key.lines().nth(1).context("an empty private key")?;
    secrets.push((
        "the encoded private key of catalogd".to_owned(),
        encoded.to_owned(),
    ));
    secrets.push(("the private key of catalogd".to_owned(), line.to_owned()));
    for program in PROGRAMS {
        for process in processes(program)? {
            let path = format!(
                "/proc/{}/root/var/run/secrets/kubernetes.io/serviceaccount/token",
                process.id
            );
            let token = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
            secrets.push((format!("the token of {}", process.host), token));
        }
    }
    Ok(secrets)
}

/// Upgrades to an image that does not exist, and then to the right image.
async fn stuck_upgrade(images: &Images) -> Result<String> {
    let absent = format!("{REGISTRY}/absent:v1");
    let ended = olm(&install_line(images, Some(&absent), "20s"))?;
    let why = "container manager cannot start: ";
    expect(&ended, 1, &["is not ready in time", why, "kubectl olm doctor"])?;
    expect(&olm("doctor")?, 1, &[why])?;
    // The old pod still serves.
    is_ready("1.0.0")?;
    let ended = olm(&install_line(images, None, "2m"))?;
    expect(&ended, 0, &["installed and available"])?;
    eventually(LIMIT, "the doctor finds nothing", async || healthy()).await?;
    Ok(String::new())
}

/// Removes the controllers. The removal is refused while they are in use, and leaves nothing afterwards.
fn uninstall() -> Result<String> {
    let used = items(&get("clusterextensions")?).next().is_some();
    if used {
        let refused = olm("uninstall-controllers")?;
        expect(
            &refused,
            1,
            &["the controllers are in use", "ClusterExtension sample"],
        )?;
    }
    delete_sample()?;
    kubectl(&format!("-n {SYSTEM} delete configmap internal-registry-ca"))?;
    let started = Instant::now();
    expect(&olm("uninstall-controllers --delete-crds --timeout 2m")?, 0, &[])?;
    let removed = started.elapsed();
    let kinds = "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces";
    let left = kubectl(&format!("get {kinds} -o name"))?;
    let ours = ["olm", "catalogd", "operator-controller"];
    let left: Vec<&str> = left
        .lines()
        .filter(|name| ours.iter().any(|part| name.contains(part)))
        .collect();
    ensure!(left.is_empty(), "these are left: {left:?}");
    Ok(format!("ended after {:.1} s", removed.as_secs_f64()))
}
