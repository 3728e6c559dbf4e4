//! Catalog and bundles of the sample operator, whose containers run on the node.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use oci_client::client::{ClientConfig, ClientProtocol};
use olm_harness::{ImageBuilder, bundle_image_from_dir, workspace};

use crate::cluster::{SAMPLE, SYSTEM};
use crate::failures;

/// Name of the node's registry in the cluster.
pub(crate) const REGISTRY: &str = "registry.registry.svc:5000";
/// The last version of the catalog.
pub(crate) const LAST: &str = "2.0.0";
const NAME: &str = "sample-operator";
const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// Reference of the pushed catalog.
pub(crate) struct Content {
    catalog: String,
}

impl Content {
    /// Pushes bundles of all versions and a catalog of them.
    pub(crate) async fn push(operator_image: &str) -> Result<Self> {
        let client = oci_client::Client::new(ClientConfig {
            protocol: ClientProtocol::Http,
            ..ClientConfig::default()
        });
        let mut versions = vec![("1.0.0", Change::None), ("1.1.0", Change::None)];
        for failure in &failures::ALL {
            versions.extend([(failure.version, failure.change), (failure.fixed, Change::None)]);
        }
        versions.push((LAST, Change::None));
        let mut catalog = format!("schema: olm.package\nname: {NAME}\ndefaultChannel: stable\n");
        catalog.push_str(&channel(&versions));
        for (version, change) in versions {
            let folder = tempfile::tempdir()?;
            write_bundle(folder.path(), version, operator_image, change)?;
            let image = format!("{REGISTRY}/bundles/{NAME}:v{version}").parse()?;
            let digest = bundle_image_from_dir(folder.path())?
                .push_with(&client, &image)
                .await?;
            catalog.push_str(&bundle(version, &digest));
        }
        for name in small_packages() {
            let folder = tempfile::tempdir()?;
            write_small_bundle(folder.path(), &name, operator_image)?;
            let image = format!("{REGISTRY}/bundles/{name}:v1.0.0").parse()?;
            let digest = bundle_image_from_dir(folder.path())?
                .push_with(&client, &image)
                .await?;
            catalog.push_str(&small_package(&name, &digest));
        }
        let image = ImageBuilder::new()
            .label(CATALOG_LABEL, "/configs")
            .file("configs/catalog.yaml", catalog);
        let name = format!("{REGISTRY}/catalogs/{SAMPLE}:v1");
        image.push_with(&client, &name.parse()?).await?;
        Ok(Self { catalog: name })
    }

    /// Returns the manifests of a catalog and an extension at 1.0.0, with a service account if `account` is true.
    pub(crate) fn manifests(&self, account: bool) -> String {
        let catalog = &self.catalog;
        let (named, rights) = if account {
            (
                format!("\n  serviceAccount: {{name: {ACCOUNT}}}"),
                account_manifests(),
            )
        } else {
            (String::new(), String::new())
        };
        format!(
            r"apiVersion: v1
kind: Namespace
metadata:
  name: {SAMPLE}
  labels: {{pod-security.kubernetes.io/enforce: restricted}}
---
{rights}apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {{name: {SAMPLE}}}
spec:
  source:
    type: Image
    image: {{ref: '{catalog}'}}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {{name: {SAMPLE}}}
spec:
  namespace: {SAMPLE}{named}
  source:
    sourceType: Catalog
    catalog: {{packageName: {NAME}, version: 1.0.0}}
"
        )
    }
}

const ACCOUNT: &str = "installer";

/// Returns an account that may install everything, and that operator-controller may act as.
fn account_manifests() -> String {
    format!(
        r"apiVersion: v1
kind: ServiceAccount
metadata: {{name: {ACCOUNT}, namespace: {SAMPLE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: sample-installer}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}
subjects:
- {{kind: ServiceAccount, name: {ACCOUNT}, namespace: {SAMPLE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: operator-controller-acts-as-installer, namespace: {SAMPLE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator-controller-impersonator-role}}
subjects:
- {{kind: ServiceAccount, name: operator-controller-controller-manager, namespace: {SYSTEM}}}
---
"
    )
}

/// Webhook of the sample operator, at the end of a CSV.
const WEBHOOK: &str = r"  webhookdefinitions:
    - type: ValidatingAdmissionWebhook
      generateName: greetings.sample.olmv1-rs.example
      deploymentName: sample-operator
      admissionReviewVersions: [v1]
      containerPort: 9443
      targetPort: 9443
      failurePolicy: Fail
      sideEffects: None
      webhookPath: /validate
      rules:
        - apiGroups: [sample.olmv1-rs.example]
          apiVersions: [v1]
          operations: [CREATE]
          resources: [greetings]
";

/// Defect of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    AbsentImage,
    Crash,
    AbsentNode,
}

impl Change {
    /// Returns the CSV of 1.0.0 as that of another version.
    fn apply(self, csv: &str, version: &str, image: &str) -> Result<String> {
        let original = "registry.invalid/sample-operator:1.0.0";
        ensure!(csv.contains(original), "the sample's image has another name");
        let absent = format!("{REGISTRY}/absent:v1");
        let csv = csv
            .replace(original, if self == Self::AbsentImage { &absent } else { image })
            .replace("1.0.0", version);
        let env = "                    env:\n";
        let containers = "                containers:\n";
        ensure!(
            csv.contains(env) && csv.contains(containers),
            "the sample's CSV has another form"
        );
        // Each version has a pod template of its own. Without the probe, a pod that crashes later counts as available.
        let variable = format!("                      - {{name: VERSION, value: {version}}}\n");
        let probe =
            "                    readinessProbe: {httpGet: {path: /readyz, port: 8081}, periodSeconds: 1}\n";
        let csv = csv.replace(env, &format!("{probe}{env}{variable}")) + WEBHOOK;
        let args = "                    args: [-fail]\n";
        let node_selector = "                nodeSelector: {example.com/absent: 'true'}\n";
        Ok(match self {
            Self::None | Self::AbsentImage => csv,
            Self::Crash => csv.replace(env, &format!("{args}{env}")),
            Self::AbsentNode => csv.replace(containers, &format!("{node_selector}{containers}")),
        })
    }
}

fn write_bundle(target: &Path, version: &str, image: &str, change: Change) -> Result<()> {
    let source = workspace::testdata().join(NAME).join("1.0.0");
    for folder in ["manifests", "metadata"] {
        fs::create_dir(target.join(folder))?;
        for entry in fs::read_dir(source.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().context("no file name")?;
            let mut text = fs::read_to_string(&path)?;
            if name.to_string_lossy().contains("clusterserviceversion") {
                text = change.apply(&text, version, image)?;
            }
            fs::write(target.join(folder).join(name), text)?;
        }
    }
    Ok(())
}

/// Returns the names of packages with one bundle that owns no CRD; each is also an extension and a namespace.
pub(crate) fn small_packages() -> impl Iterator<Item = String> {
    (1..=20).map(|number| format!("small-{number}"))
}

/// Returns the manifests of an extension of each small package.
pub(crate) fn small_extensions() -> String {
    small_packages()
        .map(|name| {
            format!(
                r"apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {{name: {name}}}
spec:
  namespace: {name}
  source:
    sourceType: Catalog
    catalog: {{packageName: {name}}}
---
"
            )
        })
        .collect::<Vec<_>>()
        .concat()
}

fn write_small_bundle(target: &Path, name: &str, image: &str) -> Result<()> {
    let source = workspace::testdata().join(NAME).join("1.0.0");
    let csv = fs::read_to_string(source.join(format!("manifests/{NAME}.clusterserviceversion.yaml")))?;
    let owned = csv
        .find("  customresourcedefinitions:\n")
        .context("no owned CRD")?;
    let install = csv.find("  install:\n").context("no install strategy")?;
    let csv = format!("{}{}", &csv[..owned], &csv[install..])
        .replace("registry.invalid/sample-operator:1.0.0", "IMAGE")
        .replace(NAME, name)
        .replace("IMAGE", image);
    let annotations = fs::read_to_string(source.join("metadata/annotations.yaml"))?;
    for (folder, file, text) in [
        ("manifests", "operator.clusterserviceversion.yaml", csv),
        ("metadata", "annotations.yaml", annotations.replace(NAME, name)),
    ] {
        fs::create_dir(target.join(folder))?;
        fs::write(target.join(folder).join(file), text)?;
    }
    Ok(())
}

fn small_package(name: &str, digest: &str) -> String {
    format!(
        r"---
schema: olm.package
name: {name}
defaultChannel: stable
---
schema: olm.channel
package: {name}
name: stable
entries:
- name: {name}.v1.0.0
---
schema: olm.bundle
package: {name}
name: {name}.v1.0.0
image: '{REGISTRY}/bundles/{name}@{digest}'
properties:
- type: olm.package
  value: {{packageName: {name}, version: 1.0.0}}
"
    )
}

/// Returns a channel in which each version replaces the one before and may follow any earlier one.
fn channel(versions: &[(&str, Change)]) -> String {
    let mut text = format!("---\nschema: olm.channel\npackage: {NAME}\nname: stable\nentries:\n");
    let all = versions.iter().map(|(version, _)| version);
    for (version, previous) in all.zip(std::iter::once(None).chain(versions.iter().map(Some))) {
        let _ = writeln!(text, "- name: {NAME}.v{version}");
        if let Some((previous, _)) = previous {
            let _ = writeln!(text, "  replaces: {NAME}.v{previous}");
            let _ = writeln!(text, "  skipRange: '>=1.0.0 <{version}'");
        }
    }
    text
}

fn bundle(version: &str, digest: &str) -> String {
    format!(
        r"---
schema: olm.bundle
package: {NAME}
name: {NAME}.v{version}
image: '{REGISTRY}/bundles/{NAME}@{digest}'
properties:
- type: olm.package
  value: {{packageName: {NAME}, version: {version}}}
- type: olm.gvk
  value: {{group: sample.olmv1-rs.example, kind: Greeting, version: v1}}
"
    )
}
