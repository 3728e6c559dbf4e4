//! Test that the real API server accepts every rendered object of bundles in a dry run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of a test")]

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Client, ResourceExt as _};
use olm_applier::plan::{CommonMetadata, phases};
use olm_bundle::permissions::Resource;
use olm_bundle::{
    Bundle, Certificates, InstallMode, OwnCertificate, RenderOptions, parse, render, serving_certificates,
};
use olm_harness::{ControlPlane, workspace};
use olm_integration::vectors;
use olm_version::VersionRelease;
use serde_json::{Value, json};

const NAMESPACE: &str = "olm-test";

/// Results for the objects of one bundle.
#[derive(Debug, Default)]
struct Count {
    accepted: usize,
    /// Kinds of objects that plain Kubernetes does not serve.
    unserved: Vec<String>,
}

fn bundle(folder: &Path) -> Bundle {
    let files = olm_bundle_files::read(folder).unwrap();
    parse(&files).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Renders the objects with self-managed certificates, as on a cluster without another certificate provider.
fn objects(bundle: &Bundle) -> Vec<Value> {
    let mut options = RenderOptions::new(NAMESPACE);
    if !bundle.supports(InstallMode::AllNamespaces) {
        let own = bundle.supports(InstallMode::OwnNamespace);
        options.config = Some(json!({"watchNamespace": if own { NAMESPACE } else { "default" }}));
    }
    let certificates = serving_certificates(bundle, NAMESPACE)
        .into_iter()
        .map(|request| {
            let valid = Duration::from_hours(24);
            let issued = olm_runtime::tls::issue(
                &request.service_name,
                &request.dns_names,
                SystemTime::now(),
                valid,
            )
            .unwrap();
            let certificate = OwnCertificate {
                ca_pem: issued.ca_pem,
                cert_pem: issued.certificate_pem,
                key_pem: issued.key_pem,
                next: None,
            };
            (request.secret_name, certificate)
        });
    options.certificates = Certificates::Own(certificates.collect());
    let rendered = render(bundle, &options).unwrap();
    let phases = phases(rendered, &CommonMetadata::default());
    phases.into_iter().flat_map(|phase| phase.objects).collect()
}

async fn dry_run(client: &Client, bundle: &Bundle) -> Count {
    let mut count = Count::default();
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::apply("dry-run").force()
    };
    for object in objects(bundle) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap_or_default();
        let resource = Resource::of_kind(&types.kind);
        let gvk = GroupVersionKind::try_from(&types).unwrap();
        let api_resource = ApiResource::from_gvk_with_plural(&gvk, &resource.plural);
        let api: Api<DynamicObject> = match object.namespace().filter(|_| resource.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &api_resource),
            None => Api::all_with(client.clone(), &api_resource),
        };
        let name = object.name_any();
        match api.patch(&name, &params, &Patch::Apply(&object)).await {
            Ok(_) => count.accepted += 1,
            // The kind is not served.
            Err(kube::Error::Api(status)) if status.code == 404 => count.unserved.push(types.kind),
            Err(error) => panic!("{}: {} {name}: {error}", bundle.csv_name(), types.kind),
        }
    }
    count
}

/// Returns one folder for each package below `root`: the last one in the order of names, which should be the newest version.
fn newest_versions(root: &Path) -> Vec<PathBuf> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect();
        found.sort();
        found
    };
    let version = |folder: &PathBuf| {
        let name = folder.file_name()?.to_str()?;
        VersionRelease::parse_legacy(name.strip_prefix('v').unwrap_or(name)).ok()
    };
    let newest = |package: &PathBuf| {
        folders(package)
            .into_iter()
            .max_by(|a, b| match (version(a), version(b)) {
                (Some(a), Some(b)) => a.cmp_precedence(&b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            })
    };
    folders(root).iter().filter_map(newest).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_rendered_bundles() {
    let testdata = workspace::root().join("test/testdata");
    let mut folders = vec![
        testdata.join("bundles/beacon"),
        testdata.join("bundles/tides"),
        testdata.join("sample-operator/2.0.0"),
    ];
    if let Some(vectors) = vectors::folder("no real bundle was shown to the API server") {
        folders.extend(newest_versions(&vectors.join("bundles")));
    }
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client();
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    for folder in folders {
        let bundle = bundle(&folder);
        let count = dry_run(&client, &bundle).await;
        eprintln!("{}: {count:?}", bundle.csv_name());
        assert!(count.accepted >= 3, "{}: {count:?}", bundle.csv_name());
        for kind in &count.unserved {
            let known = [
                "ServiceMonitor",
                "PodMonitor",
                "PrometheusRule",
                "VerticalPodAutoscaler",
            ];
            assert!(
                known.contains(&kind.as_str()) || kind.starts_with("Console"),
                "{}: {kind} is not served",
                bundle.csv_name()
            );
        }
    }
}
