//! Tests of the alerts and the dashboard in `config/optional/prometheus`: Prometheus' parser accepts their expressions, their
//! metrics exist and are those of the controllers, and each alert has a section in docs/alerts.md.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use olm_harness::workspace;
use serde::Deserialize;
use serde_json::Value;

const FOLDER: &str = "config/optional/prometheus";

#[derive(Deserialize)]
struct Parsed {
    #[serde(default)]
    error: String,
    metrics: Vec<String>,
    /// Metrics that are read without a matcher for the label `job`.
    #[serde(rename = "allJobs")]
    all_jobs: Vec<String>,
}

fn rules() -> Result<Vec<Value>> {
    let text = fs::read_to_string(workspace::root().join(FOLDER).join("alerts.yaml"))?;
    let mut object: Value = serde_saphyr::from_str(&text)?;
    match object["spec"]["groups"][0]["rules"].take() {
        Value::Array(rules) => Ok(rules),
        other => anyhow::bail!("no rules but {other}"),
    }
}

/// Returns the expressions of the alerts and of the dashboard.
fn expressions() -> Result<Vec<String>> {
    let dashboard = fs::read(workspace::root().join(FOLDER).join("dashboard.json"))?;
    let dashboard: Value = serde_json::from_slice(&dashboard)?;
    let targets = dashboard["panels"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let rules = rules()?;
    rules
        .iter()
        .chain(targets)
        .map(|item| {
            let text = item["expr"].as_str();
            text.map(str::to_owned)
                .with_context(|| format!("no expression in {item}"))
        })
        .collect()
}

/// Parses expressions with the Go program in `hack/promql`.
fn parse(expressions: &[String]) -> Result<Vec<Parsed>> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("promql");
    let built = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(workspace::root().join("hack/promql"))
        .status()
        .context("cannot run go, which builds hack/promql")?;
    ensure!(
        built.success(),
        "go build of hack/promql failed; its output is above"
    );
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = serde_json::to_vec(expressions)?;
    child.stdin.take().context("no input")?.write_all(&input)?;
    Ok(serde_json::from_slice(&child.wait_with_output()?.stdout)?)
}

/// Returns the texts of all Rust sources below a folder.
fn sources(folder: &Path, found: &mut String) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[test]
fn expressions_parse_and_their_metrics_exist() {
    let expressions = expressions().unwrap();
    assert!(expressions.len() > 25, "expressions are gone");
    let mut code = String::new();
    sources(&workspace::root().join("pkg"), &mut code).unwrap();
    for (expression, parsed) in expressions.iter().zip(parse(&expressions).unwrap()) {
        assert_eq!(parsed.error, "", "{expression}");
        // Other operators export metrics of these names too.
        for metric in parsed.all_jobs {
            let own = metric.starts_with("olm_") || metric.starts_with("catalogd_");
            assert!(own, "{metric} is that of all jobs in {expression}");
        }
        for metric in parsed.metrics.iter().filter(|metric| *metric != "up") {
            // The metrics library appends these suffixes to the registered name.
            let registered = ["_total", "_bucket", "_count", "_sum"]
                .iter()
                .find_map(|suffix| metric.strip_suffix(suffix))
                .unwrap_or(metric);
            assert!(
                [registered, metric]
                    .iter()
                    .any(|name| code.contains(&format!("\"{name}\""))),
                "no {metric} in the code, but in {expression}"
            );
        }
    }
}

#[test]
fn every_alert_has_a_runbook() {
    let page = fs::read_to_string(workspace::root().join("docs/alerts.md")).unwrap();
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let rules = rules().unwrap();
    let alerts: Vec<&str> = rules.iter().filter_map(|rule| rule["alert"].as_str()).collect();
    assert_eq!(alerts, sections);
    for (rule, alert) in rules.iter().zip(alerts) {
        let link = format!("docs/alerts.md#{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"].as_str(), Some(link.as_str()));
        assert!(
            ["critical", "warning", "info"]
                .contains(&rule["labels"]["severity"].as_str().unwrap_or_default())
        );
    }
}

/// The memory alert uses the memory limit in the manifests.
#[test]
fn the_memory_alert_fits_the_limit() {
    for controller in ["catalogd", "operator-controller"] {
        let manifest =
            fs::read_to_string(workspace::root().join(format!("config/manager/{controller}.yaml"))).unwrap();
        assert!(manifest.contains("limits: {memory: 512Mi}"), "{controller}");
    }
    let rule = rules()
        .unwrap()
        .into_iter()
        .find(|rule| rule["alert"] == "OLMMemoryHigh")
        .unwrap();
    assert!(
        rule["expr"]
            .as_str()
            .unwrap()
            .ends_with("> 0.8 * 512 * 1024 * 1024")
    );
}
