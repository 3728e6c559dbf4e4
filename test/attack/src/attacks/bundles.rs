//! Attacks by bundles: content whose processing costs far more than its size, and forbidden names.

use super::{PACKAGE, bundle_image};
use crate::{Case, Expect, Scale};

pub(super) fn cases(scale: Scale) -> Vec<Case> {
    let lists = |length: usize| format!("kind: ConfigMap\nv: [{}]\n", "[0],".repeat(length / 4));
    let mut cases = vec![
        case("no-csv", &[("manifests/a.yaml", "a: b\n".to_owned())]),
        case(
            "aliases",
            &[("manifests/a.yaml", format!("a0: &a0 [x, x]\n{}", aliases(11)))],
        ),
        case("lists", &[("manifests/a.yaml", lists(1 << 20))]),
        case(
            "hostile-name",
            &[("manifests/csv.yaml", csv("a\\u001b[31m\\n\\0b", ""))],
        ),
        case(
            "query-name",
            &[("manifests/csv.yaml", csv("a?dryRun=All&x=", ""))],
        ),
    ];
    if scale == Scale::Full {
        let long = "x".repeat(15 << 20);
        cases.push(case("lists-l", &[("manifests/a.yaml", lists(15 << 20))]));
        // A long description is within the limits: the API server refuses the Deployment.
        cases.push(Case {
            expect: Expect::Refused("Deployment.apps \"huge\" is invalid"),
            ..case("huge-csv", &[("manifests/csv.yaml", csv("huge", &long))])
        });
        cases.push(case(
            "json-lists-l",
            &[("manifests/a.yaml", json_lists(15 << 20))],
        ));
        // Each file of this bundle is within the limits, but all files together are not.
        cases.push(repeated("values-many", 20, &objects(300_000)));
        let documents = format!("{}---\n", bomb()).repeat(100);
        cases.push(case("alias-documents", &[("manifests/a.yaml", documents)]));
        cases.push(repeated("lists-many", 15, &lists(1 << 20)));
    }
    cases
}

/// Returns a `ConfigMap` of about this many bytes that contains many small objects.
fn objects(length: usize) -> String {
    format!("kind: ConfigMap\nv: [{}]\n", "{a: {}},".repeat(length / 8))
}

/// Returns a `ConfigMap` as JSON with a list of this many bytes.
fn json_lists(length: usize) -> String {
    format!("{{\"kind\":\"ConfigMap\",\"v\":[{}0]}}", "0,".repeat(length / 2))
}

/// Returns a `ConfigMap` that is small but whose aliases repeat a list 400 times. It does not break the rule against excessive
/// aliasing.
fn bomb() -> String {
    let items = vec!["{a: 0}"; 50].join(", ");
    let plain = "x, ".repeat(600);
    format!(
        "kind: ConfigMap\na: &a [{items}]\nv: [{}]\nw: [{plain}x]\n",
        vec!["*a"; 400].join(", ")
    )
}

fn aliases(levels: usize) -> String {
    (1..=levels).fold(String::new(), |text, level| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text + &format!("a{level}: &a{level} [{aliases}]\n")
    })
}

/// Returns a ClusterServiceVersion with this description and one Deployment with this name.
fn csv(name: &str, description: &str) -> String {
    format!(
        "{{\"apiVersion\":\"operators.coreos.com/v1alpha1\",\"kind\":\"ClusterServiceVersion\",\
         \"metadata\":{{\"name\":\"{PACKAGE}.v1.0.0\"}},\"spec\":{{\"version\":\"1.0.0\",\"description\":\"{description}\",\
         \"installModes\":[{{\"type\":\"AllNamespaces\",\"supported\":true}}],\
         \"install\":{{\"strategy\":\"deployment\",\"spec\":{{\"deployments\":[{{\"name\":\"{name}\",\"spec\":{{}}}}]}}}}}}}}"
    )
}

/// Returns a case of a refused bundle that has this text in `count` manifests.
fn repeated(name: &str, count: usize, text: &str) -> Case {
    let paths: Vec<String> = (0..count)
        .map(|number| format!("manifests/f{number}.yaml"))
        .collect();
    let files: Vec<_> = paths
        .iter()
        .map(|path| (path.as_str(), text.to_owned()))
        .collect();
    case(name, &files)
}

/// Returns a case of a refused bundle with these files.
fn case(name: &str, files: &[(&str, String)]) -> Case {
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    let expect = Expect::Refused("error for resolved bundle");
    Case::bundle(name, bundle_image(&files), expect)
}
