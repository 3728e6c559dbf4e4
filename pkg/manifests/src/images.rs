//! Images of the two controllers and of the web pages.

use serde_json::Value;

/// A program that runs in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// catalogd.
    Catalogd,
    /// operator-controller.
    OperatorController,
    /// The web pages of [`Overlay::Ui`](crate::Overlay::Ui).
    Ui,
}

impl Component {
    /// Both controllers.
    pub const ALL: [Self; 2] = [Self::Catalogd, Self::OperatorController];
    /// Programs with an image: both controllers and the web pages, which only some installations have.
    pub const IMAGES: [Self; 3] = [Self::Catalogd, Self::OperatorController, Self::Ui];

    /// Returns the name, which is also the last part of the image's repository.
    pub fn name(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd",
            Self::OperatorController => "operator-controller",
            Self::Ui => "kubectl-olm",
        }
    }

    /// Returns the name of the Deployment.
    pub fn deployment(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd-controller-manager",
            Self::OperatorController => "operator-controller-controller-manager",
            Self::Ui => "olmv1-ui",
        }
    }
}

/// Returns the image of a component in its Deployment, among `objects`.
pub fn image_of(objects: &[Value], component: Component) -> Option<&str> {
    let found = objects.iter().find(|object| is_deployment(object, component))?;
    found["spec"]["template"]["spec"]["containers"][0]["image"].as_str()
}

/// Replaces the image of a component in its Deployment.
pub fn replace_image(objects: &mut [Value], component: Component, image: &str) {
    for object in objects
        .iter_mut()
        .filter(|object| is_deployment(object, component))
    {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array_mut();
        if let Some(manager) = containers.and_then(|containers| containers.first_mut()) {
            manager["image"] = image.into();
        }
    }
}

fn is_deployment(object: &Value, component: Component) -> bool {
    object["kind"] == "Deployment" && object["metadata"]["name"] == component.deployment()
}
