//! Helpers that run kubectl and other programs, and read and change objects of the cluster.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Namespace in which the product runs.
pub(crate) const SYSTEM: &str = "olmv1-system";
/// Name of the catalog and the extension, and namespace of the installed operator.
pub(crate) const SAMPLE: &str = "sample";

/// Result of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; `None` if a signal ended the program.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program that gets `input`, in the root of the repository.
pub(crate) fn attempt(program: &str, args: &[&str], input: &str) -> Result<Ended> {
    attempt_in(olm_harness::workspace::root(), program, args, input)
}

/// Runs a program that gets `input`, in a folder.
pub(crate) fn attempt_in(folder: &Path, program: &str, args: &[&str], input: &str) -> Result<Ended> {
    let mut child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    // A failing program may not read its input.
    let fed = feeder.join();
    ensure!(
        !output.status.success() || matches!(fed, Ok(Ok(()))),
        "{program} {} did not read its input",
        args.join(" ")
    );
    Ok(Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a program with `input` and returns its standard output.
pub(crate) fn run(program: &str, args: &[&str], input: &str) -> Result<String> {
    let ended = attempt(program, args, input)?;
    ensure!(
        ended.code == Some(0),
        "{program} {}: {}",
        args.join(" "),
        ended.err.trim()
    );
    Ok(ended.out)
}

/// Runs kubectl with these arguments, which spaces separate, and returns its output.
pub(crate) fn kubectl(args: &str) -> Result<String> {
    run("kubectl", &args.split_whitespace().collect::<Vec<_>>(), "")
}

/// Runs `kubectl olm` with these arguments, which spaces separate.
pub(crate) fn olm(args: &str) -> Result<Ended> {
    let args: Vec<&str> = std::iter::once("olm").chain(args.split_whitespace()).collect();
    attempt("kubectl", &args, "")
}

/// Applies manifests server-side.
pub(crate) fn apply(manifests: &str) -> Result<String> {
    run("kubectl", &["apply", "--server-side", "-f", "-"], manifests)
}

/// Returns objects as JSON.
pub(crate) fn get(what: &str) -> Result<Value> {
    Ok(serde_json::from_str(&kubectl(&format!("get {what} -o json"))?)?)
}

/// Returns the items of a list.
pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

/// Returns the status, the reason and the message of a condition.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> [&'a str; 3] {
    let found = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind);
    ["status", "reason", "message"].map(|field| {
        found
            .and_then(|condition| condition[field].as_str())
            .unwrap_or_default()
    })
}

/// Fails unless the extension is Ready with this version.
pub(crate) fn is_ready(version: &str) -> Result<()> {
    let extension = get(&format!("clusterextension {SAMPLE}"))?;
    let [status, reason, message] = condition(&extension, "Ready");
    let installed = extension["status"]["install"]["bundle"]["version"].as_str();
    let progressing = condition(&extension, "Progressing");
    ensure!(
        status == "True" && installed == Some(version),
        "Ready is {status} ({reason}: {message}), installed is {installed:?}, Progressing is {progressing:?}"
    );
    Ok(())
}

/// Deletes the extension, the catalog and their namespace.
pub(crate) fn delete_sample() -> Result<()> {
    kubectl(&format!(
        "delete clusterextension {SAMPLE} --ignore-not-found --timeout=60s"
    ))?;
    let left = get(&format!("-n {SAMPLE} deployments,services"))?;
    ensure!(items(&left).next().is_none(), "the removed extension left {left}");
    kubectl(&format!(
        "delete clustercatalog {SAMPLE} --ignore-not-found --timeout=60s"
    ))?;
    kubectl(&format!(
        "delete namespace {SAMPLE} --ignore-not-found --timeout=60s"
    ))
    .map(drop)
}

/// Pins the extension to a version.
pub(crate) fn pin(version: &str) -> Result<()> {
    change(&format!(
        r#"{{"source":{{"catalog":{{"version":"{version}"}}}}}}"#
    ))
}

/// Merges fields into the spec of the extension.
pub(crate) fn change(spec: &str) -> Result<()> {
    let patch = format!(r#"{{"spec":{spec}}}"#);
    let args = [
        "patch",
        "clusterextension",
        SAMPLE,
        "--type=merge",
        "--patch",
        &patch,
    ];
    run("kubectl", &args, "").map(drop)
}
