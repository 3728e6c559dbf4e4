//! Messages about mistyped commands and about names that do not exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use common::{run, run_with};
use serde_json::{Value, json};

fn value(args: &[&str]) -> (i32, Value) {
    let said = run(&[args, &["-o", "json"]].concat());
    let value = serde_json::from_str(&said.out);
    (said.code, value.unwrap_or_else(|error| panic!("{error}: {said}")))
}

/// A folder with the catalog `catalog`, changed by `change`.
fn changed(change: impl Fn(String) -> String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(common::testdata().join("catalog")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(dir.path().join(path.file_name().unwrap()), change(text)).unwrap();
    }
    dir
}

#[test]
fn a_misspelt_package_is_recognised() {
    for args in [
        &["show", "lantren"][..],
        &["versions", "lantren"],
        &["resolve", "lantren"],
        &["why", "--package", "lantren"],
        &["graph", "lantren"],
        &["config", "init", "lantren"],
        &["show", "lantren", "--config-schema"],
    ] {
        let said = run(&[args, &["--dir", "catalog"]].concat());
        assert_eq!(said.code, 1, "{said}");
        assert_eq!(
            said.err,
            "error: package \"lantren\" is in none of the catalogs: catalog. Did you mean \"lantern\"?\n"
        );
    }
    let said = run(&["diff", "catalog", "update", "--package", "achor"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (
            1,
            "error: package \"achor\" is in neither catalog. Did you mean \"anchor\"?\n"
        )
    );
    let none = run(&["show", "whale", "--dir", "catalog"]);
    assert!(!none.err.contains("Did you mean"), "{none}");
}

#[test]
fn a_version_that_no_catalog_has() {
    let why = ["why", "--package", "lantern", "--dir", "catalog", "--want"];
    let said = run(&[&why[..], &["1.1.7"]].concat());
    assert_eq!(said.code, 1, "{said}");
    assert!(
        said.out.ends_with(
            "\n1.1.7 of this package is in none of the catalogs: catalog; nearest: 2.0.0, 1.2.0, 1.1.0+2, 1.1.0.\n"
        ),
        "{said}"
    );
    let (_, absent) = value(&[&why[..], &["1.1.7"]].concat());
    assert_eq!(
        absent["absent"],
        json!({"want": "1.1.7", "nearest": ["2.0.0", "1.2.0", "1.1.0+2", "1.1.0"]})
    );
    let named = run(&[&why[..], &["lantern.v1.2.00"]].concat());
    assert!(
        named.out.contains(
            "lantern.v1.2.00 of this package is in none of the catalogs: catalog; nearest: lantern.v1.2.0"
        ),
        "{named}"
    );
    let short = run(&[&why[..], &["v9"]].concat());
    assert!(
        short
            .out
            .contains("v9 of this package is in none of the catalogs: catalog; nearest: 3.0.0, 2.0.0."),
        "{short}"
    );
    let there = run(&[&why[..], &["2.0.0"]].concat());
    assert!(!there.out.contains("none of the catalogs"), "{there}");
}

#[test]
fn ranges_that_one_side_refuses() {
    let long = [">=1.0.0"; 9].join(", ");
    for (range, why) in [
        (">=a", "is malformed: improper constraint: \">=a\""),
        (
            "1.2.3-01",
            "the API server admits it in spec.source.catalog.version",
        ),
        (
            &long,
            "parses, but the API server refuses it in spec.source.catalog.version: it has 79 characters",
        ),
    ] {
        for args in [
            &["resolve", "lantern", "--dir", "catalog", "--range", range][..],
            &[
                "why",
                "--package",
                "lantern",
                "--dir",
                "catalog",
                "--range",
                range,
            ],
            &["config", "init", "buoy", "--dir", "buoys", "--range", range],
            &["range", range, "1.0.0"],
        ] {
            let said = run(args);
            assert_eq!(said.code, 2, "{said}");
            assert!(said.err.contains(why), "{said}");
        }
    }
    let empty = run(&["resolve", "lantern", "--dir", "catalog", "--range", ""]);
    assert_eq!(empty.code, 0, "{empty}");
}

#[test]
fn errors_are_data_for_programs() {
    let error = |kind: &str, code: u8, message: &str| json!({"error": {"kind": kind, "exitCode": code, "message": message}});
    assert_eq!(
        value(&["show", "whale", "--dir", "catalog"]),
        (
            1,
            error(
                "NegativeAnswer",
                1,
                "package \"whale\" is in none of the catalogs: catalog"
            )
        )
    );
    let (code, nowhere) = value(&["show", "lantern", "--dir", "nowhere"]);
    assert_eq!((code, &nowhere["error"]["kind"]), (3, &json!("CouldNotAsk")));
    let (code, usage) = value(&["resolve", "lantern", "--dir", "catalog", "--range", ">=a"]);
    assert_eq!(
        (code, &usage["error"]["kind"], &usage["error"]["exitCode"]),
        (2, &json!("WrongUsage"), &json!(2))
    );
    let message = usage["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("invalid value '>=a' for '--range <RANGE>': range \">=a\" is malformed"),
        "{message}"
    );
    let (code, unknown) = value(&["show", "lantern", "--colour"]);
    assert_eq!(
        (code, &unknown["error"]["message"]),
        (2, &json!("unexpected argument '--colour' found"))
    );
    let (code, none) = value(&["resolve", "lantern", "--dir", "catalog", "--range", ">9"]);
    assert_eq!((code, &none["error"]["kind"]), (1, &json!("NegativeAnswer")));
    let yaml = run(&["show", "whale", "--dir", "catalog", "-o", "yaml"]);
    assert!(yaml.out.starts_with("error:\n"), "{yaml}");
    let table = run(&["show", "whale", "--dir", "catalog"]);
    assert_eq!(table.out, "", "{table}");
}

/// A hint names only flags that the command has.
#[test]
fn without_a_cluster() {
    for args in [
        &["get"][..],
        &["status", "kite"],
        &["history", "kite"],
        &["events", "kite"],
        &["tree", "kite"],
        &["cluster-upgrade", "check"],
    ] {
        let said = run(&[args, &["--kubeconfig", "/nonexistent"]].concat());
        assert_eq!(said.code, 3, "{said}");
        assert!(said.err.contains("set --kubeconfig"), "{said}");
        let help = run(&[args, &["--help"]].concat()).out;
        for flag in ["--dir", "--image", "--catalogd"] {
            let has = help.contains(&format!("{flag} <"));
            assert_eq!(said.err.contains(flag), has, "{flag}: {said}");
        }
    }
    let offline = run(&["show", "lantern", "--kubeconfig", "/nonexistent"]);
    assert!(
        offline
            .err
            .contains("or work offline with --dir, --image or --catalogd"),
        "{offline}"
    );
}

/// A proxy of the environment is for remote API servers that `NO_PROXY` does not list, as for kubectl.
#[test]
fn a_proxy_of_the_environment() {
    use std::io::{BufRead as _, BufReader, Write as _};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("user:secret@{}", listener.local_addr().unwrap());
    let (asked, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let line = BufReader::new(&stream).lines().next();
            asked.send(line.and_then(Result::ok).unwrap_or_default()).ok();
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").ok();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let ask = |server: &str, except: &str| {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
        });
        std::fs::write(&file, kubeconfig.to_string()).unwrap();
        let variables = [("HTTPS_PROXY", proxy.as_str()), ("NO_PROXY", except)];
        let said = run_with(&["get", "--kubeconfig", file.to_str().unwrap()], &variables);
        assert_eq!(said.code, 3, "{said}");
        assert!(!said.err.contains("secret"), "{said}");
        (said.err, requests.try_recv().ok())
    };
    let connect = Some("CONNECT cluster.invalid:6443 HTTP/1.1".to_owned());
    assert_eq!(ask("https://cluster.invalid:6443", "").1, connect);
    let (said, asked) = ask("https://127.0.0.1:1", "");
    assert!(said.contains("refused"), "{said}");
    assert_eq!(asked, None);
    // kubectl ignores empty entries.
    assert_eq!(ask("https://cluster.invalid:6443", "localhost,.invalid,").1, None);
}

/// A channel's head follows from its entries, whether or not the bundle is there.
#[test]
fn a_missing_bundle_moves_no_head() {
    let without = changed(|text| {
        let metas = text.split("---\n");
        let kept = metas
            .filter(|meta| !(meta.contains("schema: olm.bundle") && meta.contains("name: lantern.v3.0.0\n")));
        kept.collect::<Vec<_>>().join("---\n")
    });
    let dir = without.path().to_str().unwrap();
    let (code, diff) = value(&["diff", "catalog", dir]);
    assert_eq!(code, 0);
    assert_eq!(diff["packages"][0]["removedBundles"], json!(["3.0.0"]), "{diff}");
    assert_eq!(diff["packages"][0]["channels"], Value::Null, "{diff}");
}

#[test]
fn names_of_namespaces() {
    for name in ["Bad_NS", "-a", "", "a.b", &"a".repeat(64)] {
        for args in [
            &["bundle", "render", "../bundles/beacon"][..],
            &["bundle", "permissions", "../bundles/beacon"],
            &["config", "init", "buoy", "--dir", "buoys"],
        ] {
            let said = run(&[args, &[format!("--namespace={name}").as_str()]].concat());
            assert_eq!(said.code, 2, "{name:?}: {said}");
            assert!(said.err.contains("--namespace"), "{said}");
        }
    }
    let said = run(&["bundle", "render", "../bundles/beacon", "-n", "Bad_NS"]);
    assert!(
        said.err.contains(
            "a namespace's name has at most 63 characters, only lower-case letters, digits and \"-\""
        ),
        "{said}"
    );
    let longest = "a".repeat(63);
    assert_eq!(
        run(&["bundle", "render", "../bundles/beacon", "-n", &longest]).code,
        0
    );
}

#[test]
fn an_empty_catalog() {
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("empty.yaml"), "# nothing\n").unwrap();
    let dir = empty.path().to_str().unwrap();
    let said = run(&["validate", dir]);
    assert_eq!(said.code, 1, "{said}");
    assert!(
        said.out
            .contains("the directory contains no catalog objects [empty]")
            && said.out.ends_with("\n1 error, 0 warnings, 0 notes\n"),
        "{said}"
    );
}

#[test]
fn a_refused_crd_has_advice() {
    insta::assert_snapshot!(
        "crd_safety",
        run(&["crd-safety", "crds/old.json", "crds/new.json"])
    );
    let (code, json) = value(&["crd-safety", "crds/old.json", "crds/new.json"]);
    assert_eq!(code, 1);
    let finding = &json["crds"][0]["findings"][0];
    assert_eq!(
        finding["waiver"],
        json!({"crd": "demos.example.com", "rule": "existingFieldRemoval", "path": "^.spec.colour"}),
        "{json}"
    );
    assert!(
        finding["instead"].as_str().unwrap().starts_with("keep the field"),
        "{json}"
    );
}

#[test]
fn the_best_match_comes_first() {
    let names = |args: &[&str]| -> Vec<String> {
        let (_, found) = value(&[&["search", "--dir", "search"], args].concat());
        let packages = found["packages"].as_array().unwrap().iter();
        packages
            .map(|package| package["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&["tide"]),
        [
            "tide",
            "tide-tables",
            "e-tide-operator",
            "d-tide-operator",
            "b-gauges",
            "c-buoys",
            "a-almanac"
        ]
    );
    assert_eq!(names(&["TIDE", "water"]), ["b-gauges"]);
    assert_eq!(names(&[]).first().map(String::as_str), Some("a-almanac"));
}

#[test]
fn a_closed_pipe_does_not_change_the_answer() {
    for (package, code) in [("lantern", 0), ("whale", 1)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_kubectl-olm"))
            .args(["resolve", package, "--dir", "catalog", "-o", "json"])
            .current_dir(common::testdata())
            .stdout(writer)
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code), "{package}");
    }
}
