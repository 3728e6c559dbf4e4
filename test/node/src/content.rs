//! Catalogs and bundles of the sample operator, whose containers run on the node, and the manifests that install them.

use std::fmt::Write as _;

use anyhow::Result;
use oci_client::client::{ClientConfig, ClientProtocol};
use olm_harness::{ImageBuilder, bundle_image_from_dir};

use crate::bundles::{Change, write_bundle, write_small_bundle, write_words_bundle};
use crate::cluster::{SAMPLE, SYSTEM};
use crate::failures;

/// Name of the node's registry in the cluster.
pub(crate) const REGISTRY: &str = "registry.registry.svc:5000";
/// Name of the same registry with HTTPS. The certificate authority of the node has issued its certificate.
pub(crate) const SECURE_REGISTRY: &str = "registry.registry.svc:5443";
/// Name of the same registry with HTTPS, where it requires a user and a password.
pub(crate) const PRIVATE_REGISTRY: &str = "registry.registry.svc:5444";
/// Name of a registry that the node cannot reach.
const PUBLIC_REGISTRY: &str = "public.example.com";
/// The last version of the catalog.
pub(crate) const LAST: &str = "2.0.0";
/// Name of the package.
pub(crate) const NAME: &str = "sample-operator";
/// Name of the package whose bundle serves an API, and of its extension.
pub(crate) const WORDS: &str = "words";
/// Namespace that the bundle of [`WORDS`] suggests.
pub(crate) const WORDS_NAMESPACE: &str = "words-api";
const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// Path of the catalog in the registry. The catalog names bundles by the registry without TLS.
const CATALOG: &str = "catalogs/sample:v1";
/// Path of the same catalog with bundles by the registry with HTTPS.
const SECURE_CATALOG: &str = "catalogs/sample-secure:v1";
/// Path of the same catalog for docs/tutorial.md, with bundles by the private registry.
const PRIVATE_CATALOG: &str = "catalogs/sample-private:v1";
/// Path of the same catalog for docs/tutorial.md, with bundles by the public registry.
const PUBLIC_CATALOG: &str = "catalogs/sample-public:v1";

/// Way to the registry of a catalog and its bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    PlainHttp,
    Https,
}

/// References of the pushed catalogs.
pub(crate) struct Content {
    plain: String,
    secure: String,
}

impl Content {
    /// Pushes the bundles of all versions, and the catalogs.
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
        let folder = tempfile::tempdir()?;
        write_words_bundle(folder.path(), operator_image)?;
        let image = format!("{REGISTRY}/bundles/{WORDS}:v1.0.0").parse()?;
        let digest = bundle_image_from_dir(folder.path())?
            .push_with(&client, &image)
            .await?;
        catalog.push_str(&small_package(WORDS, &digest));
        for (path, registry) in [
            (CATALOG, REGISTRY),
            (SECURE_CATALOG, SECURE_REGISTRY),
            (PRIVATE_CATALOG, PRIVATE_REGISTRY),
            (PUBLIC_CATALOG, PUBLIC_REGISTRY),
        ] {
            let text = catalog.replace(REGISTRY, registry);
            let image = ImageBuilder::new()
                .label(CATALOG_LABEL, "/configs")
                .file("configs/catalog.yaml", text);
            let name = format!("{REGISTRY}/{path}");
            image.push_with(&client, &name.parse()?).await?;
        }
        Ok(Self {
            plain: format!("{REGISTRY}/{CATALOG}"),
            secure: format!("{SECURE_REGISTRY}/{SECURE_CATALOG}"),
        })
    }

    /// Returns the manifests of a catalog and of an extension at version 1.0.0, with a service account if `account` is true.
    pub(crate) fn manifests(&self, access: Access, account: bool) -> String {
        let catalog = match access {
            Access::PlainHttp => &self.plain,
            Access::Https => &self.secure,
        };
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

/// Returns the manifests of an account with all rights, as which operator-controller may act.
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

/// Returns the names of the small packages, each with one bundle without a CRD. Each name is also that of an extension and of a
/// namespace.
pub(crate) fn small_packages() -> impl Iterator<Item = String> {
    (1..=20).map(|number| format!("small-{number}"))
}

/// Returns the manifests of one extension for each small package.
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

/// Returns a channel in which each version replaces the one before and can be reached from any earlier version.
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
