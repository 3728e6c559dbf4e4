//! Every command on our own catalogs, by the real program.

mod common;

use common::{run, run_with};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    let said = run(&[args, &["-o", "json"]].concat());
    serde_json::from_str(&said.out).unwrap_or_default()
}

#[test]
fn search() {
    insta::assert_snapshot!("search", run(&["search", "SHIPS", "--dir", "catalog"]));
    insta::assert_snapshot!("search_nothing", run(&["search", "whale", "--dir", "catalog"]));
    assert_eq!(
        json(&["search", "--dir", "catalog"])["packages"][1]["name"],
        "lantern"
    );
}

#[test]
fn show() {
    insta::assert_snapshot!("show", run(&["show", "lantern", "--dir", "catalog"]));
    insta::assert_snapshot!(
        "show_json",
        run(&["show", "lantern", "--dir", "catalog", "-o", "json"])
    );
    insta::assert_snapshot!("show_missing", run(&["show", "whale", "--dir", "catalog"]));
}

#[test]
fn versions() {
    insta::assert_snapshot!("versions", run(&["versions", "lantern", "--dir", "catalog"]));
    insta::assert_snapshot!(
        "versions_two",
        run(&[
            "versions",
            "lantern",
            "--dir",
            "catalog",
            "--dir",
            "update",
            "--catalog",
            "update"
        ])
    );
    insta::assert_snapshot!(
        "versions_yaml",
        run(&["versions", "anchor", "--dir", "catalog", "-o", "yaml"])
    );
}

/// The days of this catalog are far from every clock.
#[test]
fn the_end_of_support() {
    insta::assert_snapshot!("support_show", run(&["show", "beacon", "--dir", "lifecycles"]));
    insta::assert_snapshot!(
        "support_show_json",
        run(&["show", "beacon", "--dir", "lifecycles", "-o", "json"])
    );
    insta::assert_snapshot!(
        "support_versions",
        run(&["versions", "beacon", "--dir", "lifecycles"])
    );
    insta::assert_snapshot!(
        "support_versions_yaml",
        run(&["versions", "beacon", "--dir", "lifecycles", "-o", "yaml"])
    );
    let why = [
        "why",
        "--package",
        "beacon",
        "--dir",
        "lifecycles",
        "--installed",
        "1.0.0",
    ];
    insta::assert_snapshot!("support_why", run(&why));
    assert_eq!(json(&why)["support"]["installed"]["state"], "ended");
    assert_eq!(json(&why)["support"]["chosen"]["lastDay"], "2999-12-31");
    insta::assert_snapshot!(
        "support_resolve",
        run(&["resolve", "beacon", "--dir", "lifecycles"])
    );
    let chosen = |installed| {
        run(&[
            "resolve",
            "beacon",
            "--dir",
            "lifecycles",
            "--installed",
            installed,
        ])
        .out
    };
    assert!(
        chosen("1.0.0").contains("beacon.v1.1.0"),
        "the end of support chooses nothing"
    );
    assert!(chosen("1.2.0").contains("unknown: the lifecycle of version \"1.3\" is ignored"));
    insta::assert_snapshot!("support_validate", run(&["validate", "lifecycles"]));
}

#[test]
fn resolve() {
    insta::assert_snapshot!("resolve", run(&["resolve", "lantern", "--dir", "catalog"]));
    insta::assert_snapshot!(
        "resolve_json",
        run(&["resolve", "lantern", "--dir", "catalog", "-o", "json"])
    );
    let upgrade = [
        "resolve",
        "lantern",
        "--dir",
        "catalog",
        "--installed",
        "1.0.0",
        "--channel",
        "stable",
    ];
    insta::assert_snapshot!("resolve_upgrade", run(&upgrade));
    insta::assert_snapshot!("resolve_none", run(&[&upgrade[..], &["--range", ">=2"]].concat()));
    insta::assert_snapshot!(
        "resolve_self_certified",
        run(&[
            "resolve",
            "lantern",
            "--dir",
            "catalog",
            "--installed",
            "1.2.0",
            "--range",
            "1.0.0",
            "--policy",
            "SelfCertified"
        ])
    );
    insta::assert_snapshot!(
        "resolve_tie",
        run(&["resolve", "lantern", "--dir", "catalog", "--dir", "update"])
    );
}

#[test]
fn what_is_installed() {
    let with = |installed: &str| {
        run(&[
            "resolve",
            "lantern",
            "--dir",
            "catalog",
            "--channel",
            "stable",
            "--installed",
            installed,
        ])
    };
    let same = with("lantern.v1.0.0").out;
    assert_eq!(with("1.0.0").out, same);
    assert_eq!(with("v1.0.0").out, same);
    assert_eq!(with("lantern.v1.0.0@1.0.0").out, same);
    insta::assert_snapshot!("installed_unknown", with("7.7.7"));
    assert_eq!(with("lantern.v1.1.5@1.1.5").code, 0);
    assert_eq!(with("@1").code, 2);
}

/// OLM Classic does not see 2.0.0, which 3.0.0 skips; v1 takes it for its skipRange.
#[test]
fn classic_beside_ours() {
    let classic = [
        "resolve",
        "lantern",
        "--dir",
        "catalog",
        "--semantics",
        "classic",
        "--installed",
        "1.0.0",
    ];
    insta::assert_snapshot!(
        "classic_differs",
        run(&[&classic[..], &["--channel", "fast"]].concat())
    );
    insta::assert_snapshot!(
        "classic_same",
        run(&[&classic[..], &["--channel", "stable"]].concat())
    );
    assert_eq!(run(&[&classic[..], &["--range", "1"]].concat()).code, 2);
    let graph = [
        "graph",
        "lantern",
        "--dir",
        "catalog",
        "--semantics",
        "classic",
        "--from",
        "1.0.0",
    ];
    insta::assert_snapshot!("classic_graph", run(&graph));
}

#[test]
fn why() {
    let why = [
        "why",
        "--package",
        "lantern",
        "--dir",
        "catalog",
        "--installed",
        "1.0.0",
        "--channel",
        "stable",
    ];
    insta::assert_snapshot!("why", run(&why));
    insta::assert_snapshot!("why_none", run(&[&why[..], &["--range", ">=2"]].concat()));
    insta::assert_snapshot!("why_want", run(&[&why[..], &["--want", "3.0.0"]].concat()));
    insta::assert_snapshot!("why_json", run(&[&why[..], &["-o", "json"]].concat()));
    assert_eq!(run(&["why"]).code, 2);
}

#[test]
fn graph() {
    let graph = ["graph", "lantern", "--dir", "catalog"];
    insta::assert_snapshot!("graph", run(&graph));
    let from = [&graph[..], &["--from", "1.0.0"]].concat();
    insta::assert_snapshot!("graph_from", run(&from));
    for format in ["mermaid", "dot", "svg"] {
        let said = run(&[&from[..], &["--format", format]].concat());
        insta::assert_snapshot!(format!("graph_{format}"), said);
    }
    insta::assert_snapshot!(
        "graph_channel",
        run(&[&graph[..], &["--channel", "fast", "-o", "yaml"]].concat())
    );
    assert_eq!(run(&[&graph[..], &["--channel", "none"]].concat()).code, 1);
    assert_eq!(
        run(&[&graph[..], &["--format", "dot", "-o", "json"]].concat()).code,
        2
    );
}

/// The rules are tested in `olm-fbc`; this test checks that every finding arrives with its place.
#[test]
fn validate() {
    let said = run(&["validate", "broken"]);
    assert_eq!(said.code, 1, "{said}");
    let value = json(&["validate", "broken"]);
    let findings = value["findings"].as_array().unwrap();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let mut places: Vec<String> = findings
        .iter()
        .map(|finding| {
            format!(
                "{}:{} {}",
                text(finding, "file"),
                finding["line"],
                text(finding, "rule")
            )
        })
        .collect();
    places.sort();
    insta::assert_snapshot!("validate", places.join("\n"));
    for finding in findings {
        assert_ne!(finding["severity"], "note");
        assert!(said.out.contains(&text(finding, "message")), "{said}");
        assert!(said.out.contains(&text(finding, "hint")), "{said}");
    }
    let good = run(&["validate", "catalog"]);
    assert!(good.code == 0 && good.out.starts_with("0 errors"), "{good}");
    let notes = run(&["validate", "catalog", "--notes"]);
    assert!(notes.code == 0 && notes.out.contains(": note: "), "{notes}");
    let unreadable = run(&["validate", "../fbc"]);
    assert_eq!(unreadable.code, 1, "{unreadable}");
    assert_eq!(run(&["validate", "nowhere"]).code, 3);
}

#[test]
fn range() {
    insta::assert_snapshot!(
        "range",
        run(&[
            "range",
            ">=1.2, <2 || ~3.1",
            "1.3.0",
            "2.0.0",
            "3.1.5",
            "1.3.0-rc.1",
            "x"
        ])
    );
    insta::assert_snapshot!(
        "range_skip",
        run(&["range", "--skip-range", ">=1.0.0 <2.0.0", "1.5.0", "2.0.0"])
    );
    insta::assert_snapshot!("range_malformed", run(&["range", ">=a", "1.0.0"]));
    assert_eq!(run(&["range", "1.x", "1.0.0", "1.9.9"]).code, 0);
    assert_eq!(run(&["range", "1.x"]).code, 2);
}

#[test]
fn diff() {
    insta::assert_snapshot!("diff", run(&["diff", "catalog", "update", "--channel", "stable"]));
    insta::assert_snapshot!(
        "diff_json",
        run(&["diff", "catalog", "update", "--package", "lantern", "-o", "json"])
    );
    insta::assert_snapshot!("diff_same", run(&["diff", "catalog", "catalog"]));
    assert_eq!(run(&["diff", "catalog", "./nowhere"]).code, 3);
    assert_eq!(run(&["diff", "catalog", "update", "--package", "whale"]).code, 1);
}

#[test]
fn completion() {
    for shell in ["bash", "zsh", "fish"] {
        let said = run(&["completion", shell]);
        assert!(
            said.code == 0 && said.out.contains("kubectl-olm") && said.out.contains("resolve"),
            "{said}"
        );
    }
    assert_eq!(run(&["completion", "cmd"]).code, 2);
}

#[test]
fn exit_codes_and_help() {
    let help = run(&["--help"]);
    assert!(
        help.code == 0 && help.out.contains("Exit codes: 0 yes, 1 a negative answer"),
        "{help}"
    );
    assert_eq!(run(&["nonsense"]).code, 2);
    // No cluster and no other source.
    insta::assert_snapshot!(
        "no_cluster",
        run(&["show", "lantern", "--kubeconfig", "/nonexistent"])
    );
    insta::assert_snapshot!(
        "no_such_catalog",
        run(&["show", "lantern", "--dir", "catalog", "--catalog", "x"])
    );
    insta::assert_snapshot!("no_image", run(&["show", "lantern", "--image", "nonsense"]));
    let unreachable = run(&["show", "lantern", "--catalogd", "http://127.0.0.1:1/catalogs/c"]);
    assert_eq!(unreachable.code, 3, "{unreachable}");
}

/// Standard output is no terminal here.
#[test]
fn colours_are_for_terminals() {
    let args = ["show", "lantern", "--dir", "catalog"];
    let said = run_with(&args, &[("NO_COLOR", ""), ("TERM", "xterm-256color")]);
    assert!(!said.out.contains('\u{1b}'), "{said}");
}

/// A catalog's text never steers the terminal, in any output format.
#[test]
fn foreign_text_is_harmless() {
    let dir = std::env::temp_dir().join(format!("kubectl-olm-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let nasty = r#""\u001b[31m</title><script>\" --> x""#;
    let catalog = format!(
        r#"{{"schema":"olm.package","name":"p","defaultChannel":{nasty},"description":{nasty}}}
{{"schema":"olm.channel","package":"p","name":{nasty},"entries":[{{"name":{nasty}}},{{"name":"p.v1.0.0","replaces":{nasty}}}]}}
{{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"127.0.0.1:5000/p:v1","properties":[{{"type":"olm.package","value":{{"packageName":"p","version":"1.0.0"}}}}]}}"#
    );
    std::fs::write(dir.join("c.json"), catalog).unwrap();
    let at = dir.to_str().unwrap();
    for args in [
        vec!["search", "--dir", at],
        vec!["show", "p", "--dir", at],
        vec!["versions", "p", "--dir", at],
        vec!["graph", "p", "--dir", at],
        vec!["graph", "p", "--dir", at, "--format", "svg"],
        vec!["graph", "p", "--dir", at, "--format", "dot"],
        vec!["graph", "p", "--dir", at, "--format", "mermaid"],
        vec!["why", "--package", "p", "--dir", at],
    ] {
        let said = run(&args);
        assert_eq!(said.code, 0, "{said}");
        assert!(
            !said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'),
            "{said}"
        );
        if args.contains(&"svg") {
            assert!(!said.out.contains("<script>"), "{said}");
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn bundles() {
    let beacon = "../bundles/beacon";
    insta::assert_snapshot!(
        "bundle_render",
        run(&["bundle", "render", beacon, "-n", "harbour"])
    );
    insta::assert_snapshot!("bundle_validate", run(&["bundle", "validate", beacon]));
    insta::assert_snapshot!(
        "bundle_permissions",
        run(&["bundle", "permissions", beacon, "-n", "harbour", "-o", "yaml"])
    );
    insta::assert_snapshot!(
        "bundle_permissions_escalate",
        run(&["bundle", "permissions", beacon, "-n", "harbour", "--escalate"])
    );
    let objects = json(&["bundle", "render", beacon, "--certificates", "cert-manager"]);
    assert_eq!(objects["kind"], "List");
    let split = json(&["bundle", "permissions", beacon, "-n", "harbour", "--split"]);
    assert_eq!(split["items"][1]["metadata"]["namespace"], "harbour");
    let refused = run(&["bundle", "render", beacon, "--certificates", "none"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(
        refused.err.contains("webhookDefinitions are not supported"),
        "{refused}"
    );
    let config = "{watchNamespace: bay}";
    let tides = run(&[
        "bundle",
        "render",
        "../bundles/tides",
        "-n",
        "harbour",
        "--config",
        config,
    ]);
    assert!(tides.code == 0 && tides.out.contains("bay"), "{tides}");
    let selector = "{watchNamespaceSelector: {matchLabels: {sea: north}}}";
    let fleet = ["bundle", "render", "../bundles/fleet", "--config", selector];
    let unknown = run(&fleet);
    assert_eq!(unknown.code, 1, "{unknown}");
    let said = "the namespaces that watchNamespaceSelector matches are not known without a cluster: name them by --selected-namespace";
    assert!(unknown.err.contains(said), "{unknown}");
    let chosen = ["--selected-namespace", "south", "--selected-namespace", "north"];
    let fleet = run(&[&fleet[..], &chosen].concat());
    assert!(
        fleet.code == 0 && fleet.out.contains("north") && fleet.out.contains("south"),
        "{fleet}"
    );
    insta::assert_snapshot!("bundle_none", run(&["bundle", "validate", "catalog"]));
    insta::assert_snapshot!("bundle_nowhere", run(&["bundle", "validate", "./nowhere"]));
}

#[test]
fn configuration() {
    insta::assert_snapshot!("config_init", run(&["config", "init", "buoy", "--dir", "buoys"]));
    let old = ["--range", "1.x", "-n", "harbour", "--dir", "buoys"];
    let schema = json(&[&["show", "buoy", "--config-schema"], old.as_slice()].concat());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["watchNamespace"]["const"], "harbour");
    let none = run(&["config", "init", "whale", "--dir", "buoys"]);
    assert_eq!(none.code, 1, "{none}");
}
