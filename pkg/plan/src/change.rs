//! Input of a plan.

use data_encoding::HEXLOWER;
use olm_bundle::{canonical_json, list_hash, without_crd_roles};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::model::{BundleIdentity, CatalogIdentity, CrdVerdict, Dependent, Plan};
use crate::objects::{Desired, compare, desired};
use crate::{irreversible, rights, workloads};

/// Version of the digest's form.
const FORM: u32 = 1;

/// One side of a change.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The bundle.
    pub bundle: BundleIdentity,
    /// Its rendered objects, or those of its revision.
    pub objects: Vec<Value>,
}

/// A change of an extension's bundle or configuration.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Name of the extension; none for a comparison of two bundles.
    pub extension: Option<String>,
    /// Install namespace.
    pub namespace: String,
    /// `spec.config.inline` of the extension.
    pub config: Option<Value>,
    /// The newest revision; none before the first installation.
    pub from: Option<Side>,
    /// The wanted bundle.
    pub to: Side,
    /// Catalog of the wanted bundle.
    pub catalog: Option<CatalogIdentity>,
    /// Verdicts on the CRDs on both sides; see [`compare_crds`](crate::compare_crds).
    pub crds: Vec<CrdVerdict>,
    /// Other extensions that the change affects.
    pub dependents: Vec<Dependent>,
    /// Reasons why the change would be refused.
    pub refusals: Vec<String>,
    /// Checks that could not be made.
    pub unchecked: Vec<String>,
}

impl Change {
    /// Returns the digest of the change as `sha256:` and hex. It covers the extension, namespace, configuration, both bundles, the
    /// revision, the name of the catalog and the wanted objects. It does not cover: the state of the cluster and results of checks,
    /// certificates that operator-controller issues, the roles for custom resources that operator-controller adds if it may, and the
    /// digest of the catalog, whose other content may change meanwhile.
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest_of(&desired(without_crd_roles(self.to.objects.clone())))
    }

    fn digest_of(&self, wanted: &Desired) -> String {
        let objects: Vec<Value> = wanted.values().cloned().collect();
        let text = canonical_json(&json!({
            "form": FORM,
            "extension": self.extension,
            "namespace": self.namespace,
            "config": self.config,
            "from": self.from.as_ref().map(|side| &side.bundle),
            "to": self.to.bundle,
            "catalog": self.catalog.as_ref().map(|catalog| &catalog.name),
            "objects": list_hash(&objects),
        }));
        format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(self) -> Plan {
        let digest = self.digest();
        let after = desired(self.to.objects.clone());
        let (previous, before) = match self.from {
            Some(side) => (Some(side.bundle), desired(side.objects)),
            None => (None, Desired::new()),
        };
        let compared = compare(&before, &after);
        Plan {
            extension: self.extension,
            namespace: self.namespace,
            from: previous,
            to: self.to.bundle,
            catalog: self.catalog,
            digest,
            counts: compared.counts,
            created: compared.created,
            changed: compared.changed,
            deleted: compared.deleted,
            rights: rights::compare(&before, &after),
            images: workloads::images(&before, &after),
            restarts: workloads::restarts(&before, &after),
            irreversible: irreversible::all(&before, &after, &self.crds),
            crds: self.crds,
            dependents: self.dependents,
            refusals: self.refusals,
            unchecked: self.unchecked,
        }
    }
}
