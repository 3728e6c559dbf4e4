//! Images of the two controllers.

use serde_json::Value;

/// One of the two controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// catalogd.
    Catalogd,
    /// operator-controller.
    OperatorController,
}

impl Component {
    /// Both controllers.
    pub const ALL: [Self; 2] = [Self::Catalogd, Self::OperatorController];

    /// Returns the name, which is also the last part of the image's repository.
    pub fn name(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd",
            Self::OperatorController => "operator-controller",
        }
    }

    /// Returns the name of the Deployment.
    pub fn deployment(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd-controller-manager",
            Self::OperatorController => "operator-controller-controller-manager",
        }
    }
}

/// Returns the image of a controller in its Deployment, among `objects`.
pub fn image_of(objects: &[Value], component: Component) -> Option<&str> {
    let found = objects.iter().find(|object| is_deployment(object, component))?;
    found["spec"]["template"]["spec"]["containers"][0]["image"].as_str()
}

/// Replaces the image of a controller in its Deployment.
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
