//! Flags of the present installation. `install-controllers` deletes the objects of overlays that it is not told, so every next step
//! that names the command names the overlays too.

use std::fmt::Write as _;

use olm_manifests::{Component, Overlay, additions, exclusive, image_of, render};
use olm_text::object::ObjectId;
use serde_json::Value;

use crate::controllers::plan::REGISTRY_FLAG;

/// Installation in the cluster, as its objects show it.
#[derive(Debug, Default)]
pub(crate) struct Installation {
    /// Overlays, which do not exclude each other.
    pub(crate) overlays: Vec<Overlay>,
    /// Address of the registry of overlay `internal-registry`.
    registry: Option<String>,
    /// True if an image is not that of the manifests.
    other_images: bool,
    /// True if an object that may show another overlay is missing or cannot be read.
    incomplete: bool,
}

impl Installation {
    /// Recognises the installation by its objects. `unread` is true if some objects could not be read.
    pub(crate) fn of(present: &[Value], unread: bool) -> Self {
        let deployments = deployments(present);
        let incomplete = unread || deployments.len() < Component::ALL.len();
        let overlays = recognise(present, incomplete);
        let mut flags = deployments.iter().flat_map(|deployment| args(deployment));
        let registry = flags.find_map(|arg| arg.strip_prefix(REGISTRY_FLAG));
        let registry = registry.filter(|_| overlays.contains(&Overlay::InternalRegistry));
        let manifests = render(&overlays).unwrap_or_default();
        let differs = |component: &Component| {
            let found = image_of(present, *component);
            found.is_some() && found != image_of(&manifests, *component)
        };
        Self {
            registry: registry.map(ToOwned::to_owned),
            other_images: Component::IMAGES.iter().any(differs),
            overlays,
            incomplete,
        }
    }

    /// Returns the next step that applies the manifests: the command with the flags of the installation, followed by `rest`.
    pub(super) fn apply(&self, rest: &str) -> String {
        let mut step = "kubectl olm install-controllers".to_owned();
        // Writing into a String cannot fail.
        for overlay in &self.overlays {
            let _ = write!(step, " --overlay {}", overlay.name());
        }
        if let Some(host) = &self.registry {
            let _ = write!(step, " --internal-registry {host}");
        }
        step.push_str(rest);
        if self.other_images {
            step.push_str("; add the flags for images of the installation");
        }
        if self.incomplete {
            step.push_str("; add its other overlays, which the missing or unreadable objects may hide");
        }
        step
    }
}

/// Returns the Deployments of both controllers, or those of them that are present.
fn deployments(present: &[Value]) -> Vec<&Value> {
    let is_controllers = |object: &&Value| {
        let mut names = Component::ALL.iter().map(|component| component.deployment());
        object["kind"] == "Deployment" && names.any(|name| object["metadata"]["name"] == name)
    };
    present.iter().filter(is_controllers).collect()
}

/// Returns the overlays that the Deployments of the controllers show, and those whose objects are present.
fn recognise(present: &[Value], incomplete: bool) -> Vec<Overlay> {
    let deployments = deployments(present);
    let mut overlays = Vec::new();
    let shown = |overlay: &Overlay| deployments.iter().any(|deployment| is_in(*overlay, deployment));
    for overlay in Overlay::ALL.into_iter().filter(shown) {
        add(&mut overlays, overlay);
    }
    for overlay in Overlay::ALL {
        if (overlay.is_beside() || incomplete) && has_objects(overlay, &overlays, present) {
            add(&mut overlays, overlay);
        }
    }
    overlays
}

/// Returns the arguments of a Deployment's first container.
pub(super) fn args(deployment: &Value) -> impl Iterator<Item = &str> {
    let args = deployment.pointer("/spec/template/spec/containers/0/args");
    let args = args.and_then(Value::as_array).into_iter().flatten();
    args.filter_map(Value::as_str)
}

/// Adds an overlay, unless it excludes one that was found before: a leftover must not hide the installation.
fn add(overlays: &mut Vec<Overlay>, overlay: Overlay) {
    let with = [overlays.as_slice(), &[overlay]].concat();
    if !overlays.contains(&overlay) && exclusive(&with).is_none() {
        *overlays = with;
    }
}

/// Returns true if the Deployment of a controller has the changes of an overlay.
fn is_in(overlay: Overlay, deployment: &Value) -> bool {
    let has_arg = |start: &str| args(deployment).any(|arg| arg.starts_with(start));
    let pod = |field: &str| deployment["spec"]["template"]["spec"][field].as_array();
    let mounts = |name: &str| {
        let mut volumes = pod("volumes").into_iter().flatten();
        volumes.any(|volume| volume["secret"]["secretName"] == name || volume["configMap"]["name"] == name)
    };
    match overlay {
        Overlay::HighAvailability => {
            pod("topologySpreadConstraints").is_some_and(|constraints| !constraints.is_empty())
        }
        Overlay::CertManager => mounts("catalogd-service-cert"),
        Overlay::OpenShift => mounts("olmv1-service-ca"),
        Overlay::LeastPrivilege => has_arg("--service-account-policy=Require"),
        Overlay::IgnoreServiceAccounts => has_arg("--service-account-policy=Ignore"),
        Overlay::PrivateCatalogs => has_arg("--catalogs-server-require-token"),
        Overlay::InternalRegistry | Overlay::Mirrors => {
            overlay.config_map().is_some_and(|(name, _)| mounts(name))
        }
        Overlay::Prometheus
        | Overlay::Ui
        | Overlay::ProtectRevisions
        | Overlay::RequireServiceAccount
        | Overlay::MetadataNamePolicy
        | Overlay::MetadataNamePolicyV1beta1 => false,
    }
}

/// Returns true if at least half of the objects that only this overlay adds are present. Fewer may be those of another program:
/// upstream's manifests share names.
fn has_objects(overlay: Overlay, others: &[Overlay], present: &[Value]) -> bool {
    // The folders of overlays/ may contain some of optional/, which are also installed alone.
    let contained = |other: &Overlay| {
        if overlay.is_beside() {
            others.contains(other) && !other.is_beside()
        } else {
            other.is_beside()
        }
    };
    let added = |overlay: Overlay| additions(overlay).unwrap_or_default();
    let known: Vec<Value> = Overlay::ALL
        .into_iter()
        .filter(contained)
        .flat_map(added)
        .collect();
    let contains = |objects: &[Value], object: &Value| {
        let id = ObjectId::of(object);
        objects.iter().any(|other| ObjectId::of(other) == id)
    };
    let mut own = added(overlay);
    own.retain(|object| !contains(&known, object));
    let found = own.iter().filter(|object| contains(present, object)).count();
    found > 0 && 2 * found >= own.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(present: &[Value]) -> Vec<Overlay> {
        recognise(present, deployments(present).len() < Component::ALL.len())
    }

    #[test]
    fn overlays_are_recognised_by_their_objects() {
        assert_eq!(found(&render(&[]).unwrap()), []);
        for overlay in Overlay::ALL {
            assert_eq!(found(&render(&[overlay]).unwrap()), [overlay]);
        }
        let many = [
            Overlay::HighAvailability,
            Overlay::OpenShift,
            Overlay::LeastPrivilege,
            Overlay::PrivateCatalogs,
            Overlay::Mirrors,
            Overlay::Ui,
            Overlay::MetadataNamePolicy,
        ];
        assert_eq!(found(&render(&many).unwrap()), many);
    }

    /// The next step names the overlays when an object is missing, whichever it is.
    #[test]
    fn a_missing_object_hides_no_overlay() {
        for overlay in [
            Overlay::CertManager,
            Overlay::OpenShift,
            Overlay::LeastPrivilege,
            Overlay::IgnoreServiceAccounts,
            Overlay::Prometheus,
            Overlay::Ui,
            Overlay::ProtectRevisions,
        ] {
            let objects = render(&[overlay]).unwrap();
            for at in 0..objects.len() {
                let mut others = objects.clone();
                let missing = others.remove(at);
                assert_eq!(found(&others), [overlay], "{:?}", ObjectId::of(&missing));
            }
        }
        // Without the Deployment, a policy alone does not look like the overlay that contains it.
        let mut objects = render(&[Overlay::ProtectRevisions]).unwrap();
        objects.retain(|object| object["kind"] != "Deployment");
        assert_eq!(found(&objects), [Overlay::ProtectRevisions]);
    }

    #[test]
    fn leftovers_are_no_overlay() {
        let bindings = |object: &Value| object["kind"] == "ClusterRoleBinding";
        let mut objects = render(&[]).unwrap();
        objects.extend(
            render(&[Overlay::Prometheus])
                .unwrap()
                .into_iter()
                .filter(bindings),
        );
        assert_eq!(found(&objects), []);
        // Certificates of cert-manager that nothing mounts any more.
        let mut objects = render(&[Overlay::OpenShift]).unwrap();
        objects.extend(additions(Overlay::CertManager).unwrap());
        objects.retain(|object| object["metadata"]["name"] != Component::Catalogd.deployment());
        assert_eq!(found(&objects), [Overlay::OpenShift]);
    }

    #[test]
    fn the_next_step_has_the_flags_of_the_installation() {
        let step = |present: &[Value], unread| Installation::of(present, unread).apply(" does it");
        assert_eq!(
            step(&render(&[]).unwrap(), false),
            "kubectl olm install-controllers does it"
        );
        let mut objects = render(&[Overlay::LeastPrivilege, Overlay::InternalRegistry]).unwrap();
        assert_eq!(
            step(&objects, false),
            "kubectl olm install-controllers --overlay least-privilege --overlay internal-registry \
             --internal-registry registry.registry.svc:5000 does it"
        );
        olm_manifests::replace_image(&mut objects, Component::Catalogd, "mirror.example/catalogd:1");
        let step = step(&objects, true);
        assert!(
            step.contains("flags for images") && step.contains("other overlays"),
            "{step}"
        );
    }

    /// The diagnosis reads the objects of all overlays and compares with some of them.
    #[test]
    fn every_manifest_of_an_overlay_is_read() {
        let all = olm_manifests::all().unwrap();
        for overlay in Overlay::ALL {
            for object in render(&[overlay]).unwrap() {
                let id = ObjectId::of(&object);
                assert!(all.iter().any(|other| ObjectId::of(other) == id), "{id:?}");
            }
        }
    }
}
