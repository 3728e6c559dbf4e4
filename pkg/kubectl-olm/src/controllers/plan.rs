//! Objects of an installation. Pure.

use olm_manifests::{Component, Overlay, image_of, render, replace_image};
use olm_text::object::ObjectId;
use serde_json::Value;

use crate::cli::controllers::{ImageArgs, InstallArgs};
use crate::failure::Failure;

/// Flag of the controllers that names the registry inside the cluster.
pub(crate) const REGISTRY_FLAG: &str = "--allow-registry-host=";

/// Objects to apply, and those of other overlays, which a former installation may have left.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Chosen overlays.
    pub(crate) overlays: Vec<Overlay>,
    /// Objects to apply, in this order.
    pub(crate) objects: Vec<Value>,
    /// Objects of overlays that are not chosen.
    pub(crate) superfluous: Vec<Value>,
}

impl Plan {
    /// Renders the manifests with the overlays and images of `args`.
    ///
    /// # Errors
    /// The arguments contradict each other.
    pub(crate) fn new(args: &InstallArgs) -> Result<Self, Failure> {
        let internal = args.overlays.contains(&Overlay::InternalRegistry);
        if internal != args.internal_registry.is_some() {
            return Err(Failure::Usage(
                "--overlay internal-registry and --internal-registry HOST:PORT need each other".to_owned(),
            ));
        }
        let failed = |error| Failure::Usage(olm_text::chain(&error));
        let mut objects = render(&args.overlays).map_err(failed)?;
        for component in Component::IMAGES {
            let image = image(&objects, component, &args.images);
            if let Some(image) = image {
                replace_image(&mut objects, component, &image);
            }
        }
        if let Some(host) = &args.internal_registry {
            name_registry(&mut objects, host);
        }
        let chosen = |object: &Value| objects.iter().any(|other| same(object, other));
        let superfluous = olm_manifests::all().map_err(failed)?;
        let superfluous = superfluous.into_iter().filter(|object| !chosen(object)).collect();
        Ok(Self {
            overlays: args.overlays.clone(),
            objects,
            superfluous,
        })
    }
}

/// Returns true if both are the same object, in whatever version of its API.
fn same(one: &Value, other: &Value) -> bool {
    let key = |object| {
        let id: ObjectId<'_> = ObjectId::of(object);
        (id.group, id.kind, id.namespace, id.name)
    };
    key(one) == key(other)
}

/// Returns the image of a component, if a flag changes it.
fn image(objects: &[Value], component: Component, args: &ImageArgs) -> Option<String> {
    let whole = match component {
        Component::Catalogd => &args.catalogd_image,
        Component::OperatorController => &args.operator_controller_image,
        Component::Ui => &args.ui_image,
    };
    if whole.is_some() {
        return whole.clone();
    }
    if args.image_registry.is_none() && args.image_tag.is_none() {
        return None;
    }
    let present = image_of(objects, component)?;
    // A colon before the last slash belongs to the port.
    let (repository, tag) = match present.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (present, "latest"),
    };
    let repository = match &args.image_registry {
        Some(prefix) => format!("{}/{}", prefix.trim_end_matches('/'), component.name()),
        None => repository.to_owned(),
    };
    Some(format!(
        "{repository}:{}",
        args.image_tag.as_deref().unwrap_or(tag)
    ))
}

/// Writes the registry's host into the flag of both Deployments.
fn name_registry(objects: &mut [Value], host: &str) {
    for object in objects.iter_mut().filter(|object| object["kind"] == "Deployment") {
        let args = object.pointer_mut("/spec/template/spec/containers/0/args");
        for arg in args.and_then(Value::as_array_mut).into_iter().flatten() {
            if arg.as_str().is_some_and(|arg| arg.starts_with(REGISTRY_FLAG)) {
                *arg = format!("{REGISTRY_FLAG}{host}").into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn plan(flags: &str) -> Result<Plan, Failure> {
        let words = ["kubectl-olm", "install-controllers"];
        let words = words.into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::InstallControllers(args) => Plan::new(&args),
            other => panic!("{other:?}"),
        }
    }

    fn images(flags: &str) -> Vec<String> {
        let objects = plan(flags).unwrap().objects;
        let image = |component| image_of(&objects, component).unwrap().to_owned();
        Component::ALL.map(image).to_vec()
    }

    #[test]
    fn images_by_flags() {
        assert_eq!(
            images(""),
            ["olmv1/catalogd:dev", "olmv1/operator-controller:dev"]
        );
        assert_eq!(
            images("--image-registry localhost:5000/olm/ --image-tag 1.0.0"),
            [
                "localhost:5000/olm/catalogd:1.0.0",
                "localhost:5000/olm/operator-controller:1.0.0"
            ]
        );
        assert_eq!(
            images("--image-registry r.example --catalogd-image c@sha256:ab"),
            ["c@sha256:ab", "r.example/operator-controller:dev"]
        );
        let pages = |flags: &str| {
            let objects = plan(flags).unwrap().objects;
            image_of(&objects, Component::Ui).map(ToOwned::to_owned)
        };
        assert_eq!(pages("--image-tag 1.0.0"), None);
        let chosen = pages("--overlay ui --image-registry r.example --image-tag 1.0.0");
        assert_eq!(chosen.as_deref(), Some("r.example/kubectl-olm:1.0.0"));
        let own = pages("--overlay ui --image-tag 1.0.0 --ui-image u:2");
        assert_eq!(own.as_deref(), Some("u:2"));
    }

    #[test]
    fn the_internal_registry_is_named() {
        let plan = plan("--overlay internal-registry --internal-registry registry.here:5000").unwrap();
        let text = serde_json::to_string(&plan.objects).unwrap();
        assert_eq!(
            text.matches("\"--allow-registry-host=registry.here:5000\"")
                .count(),
            2
        );
        assert_eq!(text.matches(REGISTRY_FLAG).count(), 2);
    }

    #[test]
    fn contradictions_are_wrong_usage() {
        for flags in [
            "--overlay internal-registry",
            "--internal-registry registry.here:5000",
            "--overlay openshift --overlay cert-manager",
        ] {
            assert!(matches!(plan(flags), Err(Failure::Usage(_))), "{flags}");
        }
    }

    #[test]
    fn what_an_overlay_omits_is_superfluous() {
        let plan = plan("--overlay least-privilege").unwrap();
        let superfluous = |name: &str| {
            plan.superfluous
                .iter()
                .any(|object| ObjectId::of(object).name == name)
        };
        assert!(superfluous("operator-controller-cluster-admin-rolebinding"));
        assert!(!superfluous("operator-controller-watch-role"));
    }
}
