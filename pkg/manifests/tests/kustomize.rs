//! Comparison with `kubectl kustomize`.

#![expect(
    clippy::disallowed_methods,
    reason = "the test runs kubectl on copies of files"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use olm_manifests::{ManifestError, Overlay, all, render};
use olm_text::object::ObjectId;
use olm_yaml::{Limits, documents};
use serde_json::{Value, json};

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config")
}

/// Returns the output of kustomize; none if there is no kubectl.
fn kustomize(folder: &Path) -> Result<Option<Vec<Value>>> {
    let Ok(output) = Command::new("kubectl").arg("kustomize").arg(folder).output() else {
        writeln!(
            std::io::stderr(),
            "SKIPPED: no kubectl on the PATH, so the manifests were not compared with kustomize"
        )?;
        return Ok(None);
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", folder.display());
    let mut objects = documents(&output.stdout, &Limits::default())?;
    objects.iter_mut().for_each(without_blank_lines);
    Ok(Some(objects))
}

/// Removes the blank lines that kustomize adds to line breaks in folded texts whenever it rewrites them.
fn without_blank_lines(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("\n\n") => *text = text.replace("\n\n", "\n"),
        Value::Array(items) => items.iter_mut().for_each(without_blank_lines),
        Value::Object(members) => members.values_mut().for_each(without_blank_lines),
        _ => {}
    }
}

fn by_id(objects: &[Value]) -> BTreeMap<ObjectId<'_>, &Value> {
    let found: BTreeMap<_, _> = objects
        .iter()
        .map(|object| (ObjectId::of(object), object))
        .collect();
    assert_eq!(found.len(), objects.len(), "an object is repeated");
    found
}

fn compare(what: &str, ours: &[Value], theirs: &[Value]) {
    let mut ours = ours.to_vec();
    ours.iter_mut().for_each(without_blank_lines);
    let (ours, theirs) = (by_id(&ours), by_id(theirs));
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>(),
        "{what}"
    );
    for (id, object) in &ours {
        assert_eq!(Some(object), theirs.get(id), "{what}: {id:?}");
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[test]
fn the_default_and_each_overlay_are_kustomizes() {
    let Some(default) = kustomize(&config().join("default")).unwrap() else {
        return;
    };
    compare("default", &render(&[]).unwrap(), &default);
    for overlay in Overlay::ALL {
        let mut theirs = kustomize(&config().join(overlay.folder())).unwrap().unwrap();
        if overlay.is_beside() {
            theirs.extend(default.iter().cloned());
        }
        compare(overlay.name(), &render(&[overlay]).unwrap(), &theirs);
    }
}

/// Overlays combine like kustomizations of which each has the one before as its base.
#[test]
fn combinations_are_kustomizes() {
    use Overlay::{
        CertManager, HighAvailability, IgnoreServiceAccounts, InternalRegistry, LeastPrivilege, Mirrors,
        OpenShift, PrivateCatalogs,
    };
    for combination in [
        vec![HighAvailability, CertManager, LeastPrivilege, PrivateCatalogs],
        vec![
            HighAvailability,
            OpenShift,
            IgnoreServiceAccounts,
            InternalRegistry,
            Mirrors,
        ],
        vec![
            HighAvailability,
            OpenShift,
            LeastPrivilege,
            PrivateCatalogs,
            InternalRegistry,
        ],
        vec![CertManager, IgnoreServiceAccounts],
    ] {
        let folder = tempfile::tempdir().unwrap();
        copy(&config(), folder.path()).unwrap();
        let mut base = "default";
        for overlay in &combination {
            let file = folder.path().join(overlay.folder()).join("kustomization.yaml");
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains("- ../../default\n"), "{overlay:?} has another base");
            let text = text.replace("- ../../default\n", &format!("- ../../{base}\n"));
            fs::write(&file, text).unwrap();
            base = overlay.folder();
        }
        let Some(theirs) = kustomize(&folder.path().join(base)).unwrap() else {
            return;
        };
        let mut reversed = combination.clone();
        reversed.reverse();
        let ours = render(&reversed).unwrap();
        compare(&format!("{combination:?}"), &ours, &theirs);
    }
}

#[test]
fn an_object_of_two_overlays_is_there_once() {
    let two = render(&[Overlay::OpenShift, Overlay::Prometheus]).unwrap();
    let one = render(&[Overlay::OpenShift]).unwrap();
    let (two, one) = (by_id(&two), by_id(&one));
    assert_eq!(two.keys().collect::<Vec<_>>(), one.keys().collect::<Vec<_>>());
    for (id, object) in one.iter().filter(|(id, _)| id.kind == "ServiceMonitor") {
        let authority = |object: &Value| object["spec"]["endpoints"][0]["tlsConfig"].clone();
        assert_eq!(two.get(id).copied().map(authority), Some(authority(object)));
    }
    let whole = all().unwrap();
    let every = by_id(&whole);
    for overlay in Overlay::ALL {
        for object in render(&[overlay]).unwrap() {
            assert!(every.contains_key(&ObjectId::of(&object)), "{object}");
        }
    }
}

/// Readers of the controllers trust the authorities of the certificates that the chosen overlays use.
#[test]
fn authorities_follow_the_source_of_certificates() {
    let find = |objects: &[Value], kind: &str, name: &str| {
        let found = objects
            .iter()
            .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.cloned().unwrap()
    };
    let own = |name: &str| json!({"secret": {"name": format!("{name}-service-own-cert"), "key": "ca.crt"}});
    let issued = |name: &str| json!({"secret": {"name": name, "key": "ca.crt"}});
    let service_ca = || json!({"configMap": {"name": "olmv1-service-ca", "key": "service-ca.crt"}});
    for (certificates, catalogd, operator_controller) in [
        (None, own("catalogd"), own("operator-controller")),
        (
            Some(Overlay::CertManager),
            issued("catalogd-service-cert"),
            issued("operator-controller-cert"),
        ),
        (Some(Overlay::OpenShift), service_ca(), service_ca()),
    ] {
        let mut overlays = vec![Overlay::Prometheus, Overlay::Ui];
        overlays.extend(certificates);
        let objects = render(&overlays).unwrap();
        for (name, expected) in [
            ("catalogd", &catalogd),
            ("operator-controller", &operator_controller),
        ] {
            let monitor = find(&objects, "ServiceMonitor", &format!("{name}-metrics-monitor"));
            let authority = &monitor["spec"]["endpoints"][0]["tlsConfig"]["ca"];
            assert_eq!(authority, expected, "{certificates:?}");
        }
        let pages = find(&objects, "Deployment", "olmv1-ui");
        let volume = &pages["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"];
        let sources: Vec<Value> = volume
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|source| source.as_object().unwrap())
            .map(|(sort, source)| json!({sort: {"name": source["name"], "key": source["items"][0]["key"]}}))
            .collect();
        assert!(sources.contains(&catalogd), "{certificates:?}: {sources:?}");
    }
}

/// Without the right to watch a kind, its objects are polled and reported as not watched.
#[test]
fn a_controller_with_few_rights_watches_the_kinds_that_rendering_creates() {
    let objects = render(&[Overlay::LeastPrivilege]).unwrap();
    let role = objects
        .iter()
        .find(|object| object["metadata"]["name"] == "operator-controller-watch-usual-kinds")
        .unwrap();
    for (group, resource) in [
        ("", "serviceaccounts"),
        ("", "services"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apiregistration.k8s.io", "apiservices"),
        ("apps", "deployments"),
        ("cert-manager.io", "certificates"),
        ("cert-manager.io", "issuers"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        ("rbac.authorization.k8s.io", "roles"),
    ] {
        let grants = |rule: &Value| {
            rule["apiGroups"] == json!([group])
                && rule["resources"].as_array().unwrap().contains(&json!(resource))
                && rule["verbs"] == json!(["list", "watch"])
        };
        let rules = role["rules"].as_array().unwrap();
        assert!(rules.iter().any(grants), "{resource}.{group}");
    }
}

#[test]
fn monitors_for_cert_manager_are_kustomizes() {
    let Some(mut theirs) = kustomize(&config().join("overlays/cert-manager")).unwrap() else {
        return;
    };
    theirs.extend(
        kustomize(&config().join("optional/prometheus-cert-manager"))
            .unwrap()
            .unwrap(),
    );
    let ours = render(&[Overlay::CertManager, Overlay::Prometheus]).unwrap();
    compare("prometheus-cert-manager", &ours, &theirs);
}

#[test]
fn contradictions_are_refused() {
    let error = render(&[
        Overlay::OpenShift,
        Overlay::HighAvailability,
        Overlay::CertManager,
    ])
    .unwrap_err();
    assert!(matches!(error, ManifestError::Exclusive(..)));
    assert_eq!(
        error.to_string(),
        "the overlays cert-manager and openshift exclude each other: choose one"
    );
}

#[test]
fn objects_come_in_the_order_of_their_application() {
    let objects = render(&[Overlay::CertManager, Overlay::Prometheus]).unwrap();
    let kinds: Vec<&str> = objects.iter().map(|object| ObjectId::of(object).kind).collect();
    assert_eq!(kinds.first(), Some(&"Namespace"));
    assert_eq!(kinds.last(), Some(&"Deployment"));
    let place = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(place("CustomResourceDefinition") < place("ServiceAccount"));
    assert!(place("ClusterRole") < place("ClusterRoleBinding"));
    assert!(place("ClusterIssuer") < place("Certificate"));
}
