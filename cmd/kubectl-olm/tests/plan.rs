//! Plans between two bundles, by the real program, without a cluster; and the commands of docs/plans.md.

mod common;

use std::path::PathBuf;

use common::{Said, run};
use serde_json::Value;

const OLD: &str = "../sample-operator/1.0.0";
const NEW: &str = "../sample-operator/1.1.0";

fn plan(args: &[&str]) -> Said {
    run(&[&["plan"], args].concat())
}

#[test]
fn outputs() {
    insta::assert_snapshot!(
        "plan_table",
        plan(&["--from", OLD, "--to", NEW, "-n", "greeters"])
    );
    insta::assert_snapshot!("plan_json", plan(&["--from", OLD, "--to", NEW, "-o", "json"]));
    insta::assert_snapshot!(
        "plan_markdown",
        plan(&["--from", OLD, "--to", NEW, "-o", "markdown"])
    );
    let html = plan(&["--from", OLD, "--to", NEW, "-o", "html"]);
    assert_eq!(html.code, 1, "{html}");
    assert!(
        html.out.starts_with("<!doctype html>") && html.out.ends_with("</html>\n"),
        "{html}"
    );
    assert!(
        html.out
            .contains("<td>/data/greeting</td><td>&quot;Hello&quot;</td>"),
        "{html}"
    );
    let json: Value =
        serde_json::from_str(&plan(&["--from", OLD, "--to", NEW, "-o", "json"]).out).unwrap_or_default();
    let yaml = plan(&["--from", OLD, "--to", NEW, "-o", "yaml"]);
    let yaml: Value = serde_saphyr::from_str(&yaml.out).unwrap_or_default();
    assert_eq!(json, yaml);
}

#[test]
fn exit_codes() {
    let same = plan(&["--from", OLD, "--to", OLD]);
    assert_eq!(same.code, 0, "{same}");
    assert!(same.out.contains("nothing to do"), "{same}");
    assert_eq!(plan(&["--from", OLD, "--to", NEW]).code, 1);
    let unreadable = plan(&["--from", OLD, "--to", "./nowhere"]);
    assert_eq!(unreadable.code, 3, "{unreadable}");
    let refused = plan(&["--from", OLD, "--to", NEW, "--config", "{unknown: 1}"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.err.contains("cannot be installed"), "{refused}");
    for wrong in [
        &["--from", OLD][..],
        &["--from", OLD, "--to", NEW, "-f", "x"],
        &["--namespace", "x", "e"],
        &[],
    ] {
        assert_eq!(plan(wrong).code, 2, "{wrong:?}");
    }
    let other = run(&["show", "lantern", "--dir", "catalog", "-o", "markdown"]);
    assert_eq!(other.code, 2, "{other}");
    assert!(other.err.contains("formats of plans"), "{other}");
}

#[test]
fn a_plan_without_a_cluster_says_so() {
    let said = plan(&["some-extension"]);
    assert_eq!(said.code, 3, "{said}");
}

/// Writes a catalog of the sample operator, whose bundles are in a directory.
fn sample_catalog(folder: &tempfile::TempDir) -> String {
    let bundle = |version: &str| {
        format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"sample-operator\",\"name\":\"sample-operator.v{version}\",\
             \"image\":\"registry.invalid/sample:{version}\",\"properties\":[{{\"type\":\"olm.package\",\"value\":\
             {{\"packageName\":\"sample-operator\",\"version\":\"{version}\"}}}}]}}\n"
        )
    };
    let catalog = [
        "{\"schema\":\"olm.package\",\"name\":\"sample-operator\",\"defaultChannel\":\"stable\"}\n".to_owned(),
        "{\"schema\":\"olm.channel\",\"package\":\"sample-operator\",\"name\":\"stable\",\"entries\":[\
         {\"name\":\"sample-operator.v1.0.0\"},\
         {\"name\":\"sample-operator.v1.1.0\",\"replaces\":\"sample-operator.v1.0.0\"},\
         {\"name\":\"sample-operator.v2.0.0\",\"replaces\":\"sample-operator.v1.1.0\",\"skips\":[\"sample-operator.v1.0.0\"]},\
         {\"name\":\"sample-operator.v3.0.0\",\"replaces\":\"sample-operator.v2.0.0\"}]}\n"
            .to_owned(),
        bundle("1.0.0"),
        bundle("1.1.0"),
        bundle("2.0.0"),
    ];
    let path = folder.path().join("catalog");
    let written =
        std::fs::create_dir(&path).and_then(|()| std::fs::write(path.join("catalog.json"), catalog.concat()));
    assert!(written.is_ok(), "{written:?}");
    path.display().to_string()
}

#[test]
fn graphs_with_verdicts() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let catalog = sample_catalog(&folder);
    let cache = folder.path().join("cache").display().to_string();
    let graph = |more: &[&str]| {
        let args = [
            "graph",
            "sample-operator",
            "--dir",
            &catalog,
            "--annotate",
            "--bundles",
            "../sample-operator",
        ];
        common::run_with(&[&args[..], more].concat(), &[("XDG_CACHE_HOME", &cache)])
    };
    insta::assert_snapshot!("graph_annotated_text", graph(&[]));
    insta::assert_snapshot!("graph_annotated_mermaid", graph(&["--format", "mermaid"]));
    insta::assert_snapshot!("graph_annotated_dot", graph(&["--format", "dot"]));
    insta::assert_snapshot!("graph_annotated_json", graph(&["-o", "json"]));
    let svg = graph(&["--format", "svg"]);
    assert_eq!(
        svg.out
            .matches("<title>1.0.0 to 1.1.0: CRD-safe, 1 new image")
            .count(),
        1,
        "{svg}"
    );
    assert!(
        svg.out.contains("stroke=\"#94a3b8\" stroke-width=\"1.6\"") && svg.out.contains("not compared"),
        "{svg}"
    );
    // The second run reads its verdicts: a changed entry shows.
    let entries: Vec<PathBuf> = std::fs::read_dir(folder.path().join("cache/kubectl-olm/verdicts"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    assert_eq!(entries.len(), 3);
    for entry in entries {
        std::fs::write(entry, "{\"findings\": 77}")?;
    }
    let cached = graph(&[]);
    assert_eq!(cached.out.matches("77 CRD findings").count(), 3, "{cached}");
    Ok(())
}

/// Real upgrades are planned, those with unsafe CRDs are refused, and every comment fits.
#[test]
fn real_bundles() {
    let Some(vectors) = common::vectors("no real bundles were compared") else {
        return;
    };
    for (package, old, new, code) in [
        ("argocd-operator", "0.16.0", "0.17.0", 2),
        ("rabbitmq-cluster-operator", "2.22.2", "2.22.3", 1),
        ("strimzi-kafka-operator", "1.1.0", "1.2.0", 1),
    ] {
        let folder = |version| {
            vectors
                .join("bundles")
                .join(package)
                .join(version)
                .display()
                .to_string()
        };
        let (old, new) = (folder(old), folder(new));
        let said = plan(&["--from", &old, "--to", &new, "-o", "markdown"]);
        assert_eq!(said.code, code, "{said}");
        assert!(said.out.len() <= 65_536, "{package}: {}", said.out.len());
    }
}

/// Runs every command of the page that begins with `kubectl olm plan --from`.
#[test]
fn commands_of_the_page() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plans.md"))
        .unwrap_or_default();
    let mut count = 0;
    for line in page.lines() {
        let Some(command) = line.strip_prefix("kubectl olm plan --from ") else {
            continue;
        };
        let command = command.split_once('#').map_or(command, |(command, _)| command);
        let args = command.replace("test/testdata/", "../");
        let args: Vec<&str> = ["--from"].into_iter().chain(args.split_whitespace()).collect();
        let said = plan(&args);
        assert_eq!(said.code, 1, "{line}\n{said}");
        count += 1;
    }
    assert_eq!(count, 3);
}
