//! Image references that follow the cluster's version, such as `registry.example/catalog:v{kube_major_version}.{kube_minor_version}`.
//!
//! The variables of Kubernetes are those of OLM Classic's annotation of the same name; those of OpenShift are additional. The
//! module is pure: the versions are inputs.

use olm_api::keys;
use olm_version::Version;

/// Most bytes of an unknown variable that an error shows.
const MAX_NAME: usize = 64;

/// Versions of the cluster, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterVersions {
    /// Version of the API server.
    pub kubernetes: Option<Version>,
    /// Version of OpenShift that the cluster has reached; `None` on other clusters.
    pub openshift: Option<Version>,
}

/// Fault of a template. Its text is the message of the condition.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TemplateError {
    /// A variable does not exist.
    #[error(
        "annotation {} has the unknown variable {{{variable}}}; use {}",
        keys::CATALOG_IMAGE_TEMPLATE_ANNOTATION,
        names()
    )]
    Unknown {
        /// Name between the braces.
        variable: String,
    },
    /// A brace has no counterpart.
    #[error(
        "annotation {} has a {{ without its }}; write variables as {{kube_minor_version}}",
        keys::CATALOG_IMAGE_TEMPLATE_ANNOTATION
    )]
    Unclosed,
    /// The cluster does not tell a version.
    #[error(
        "annotation {} has the variable {{{variable}}}, but the version of {product} is unknown; remove the variable or the annotation, \
         or look why the cluster does not tell that version",
        keys::CATALOG_IMAGE_TEMPLATE_ANNOTATION
    )]
    NoVersion {
        /// Name between the braces.
        variable: &'static str,
        /// Kubernetes or OpenShift.
        product: &'static str,
    },
}

impl TemplateError {
    /// Returns true if only a change of the annotation helps.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::NoVersion { .. })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Product {
    Kubernetes,
    OpenShift,
}

#[derive(Clone, Copy)]
enum Part {
    Major,
    Minor,
    Patch,
}

/// Variables: name, product, part of its version.
const VARIABLES: [(&str, Product, Part); 6] = [
    ("kube_major_version", Product::Kubernetes, Part::Major),
    ("kube_minor_version", Product::Kubernetes, Part::Minor),
    ("kube_patch_version", Product::Kubernetes, Part::Patch),
    ("openshift_major_version", Product::OpenShift, Part::Major),
    ("openshift_minor_version", Product::OpenShift, Part::Minor),
    ("openshift_patch_version", Product::OpenShift, Part::Patch),
];

fn names() -> String {
    VARIABLES.map(|(name, ..)| format!("{{{name}}}")).join(", ")
}

/// Returns true if the template has a variable of OpenShift, so that the cluster's `ClusterVersion` must be read.
pub(super) fn needs_openshift(template: &str) -> bool {
    VARIABLES
        .iter()
        .any(|(name, product, _)| *product == Product::OpenShift && template.contains(&format!("{{{name}}}")))
}

/// Returns the template with the variables replaced.
///
/// The result is not checked: it is parsed as an image reference like that of the spec.
///
/// # Errors
/// An unknown variable, an open brace, or a version that the cluster does not tell.
pub fn expand(template: &str, versions: &ClusterVersions) -> Result<String, TemplateError> {
    let mut expanded = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
        expanded.push_str(before);
        expanded.push_str(&value(variable, versions)?.to_string());
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value(variable: &str, versions: &ClusterVersions) -> Result<u64, TemplateError> {
    let Some((name, product, part)) = VARIABLES.iter().find(|(name, ..)| *name == variable) else {
        return Err(TemplateError::Unknown {
            variable: olm_text::cut(variable, MAX_NAME).into_owned(),
        });
    };
    let (version, product) = match product {
        Product::Kubernetes => (&versions.kubernetes, "Kubernetes"),
        Product::OpenShift => (&versions.openshift, "OpenShift"),
    };
    let version = version.as_ref().ok_or(TemplateError::NoVersion {
        variable: name,
        product,
    })?;
    Ok(match part {
        Part::Major => version.major,
        Part::Minor => version.minor,
        Part::Patch => version.patch,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn versions() -> ClusterVersions {
        ClusterVersions {
            kubernetes: Some("1.36.3-eks-5".parse().unwrap()),
            openshift: None,
        }
    }

    #[test]
    fn variables_are_replaced() {
        let template = "r.example/c:v{kube_major_version}.{kube_minor_version}.{kube_patch_version}";
        assert_eq!(
            expand(template, &versions()).as_deref(),
            Ok("r.example/c:v1.36.3")
        );
        assert_eq!(
            expand("r.example/c:v1", &versions()).as_deref(),
            Ok("r.example/c:v1")
        );
        let both = ClusterVersions {
            openshift: Some("4.22.9".parse().unwrap()),
            ..versions()
        };
        let template = "r.example/c:{openshift_major_version}.{openshift_minor_version}-{kube_minor_version}";
        assert_eq!(expand(template, &both).as_deref(), Ok("r.example/c:4.22-36"));
        assert!(needs_openshift(template));
        assert!(!needs_openshift("r.example/c:{kube_minor_version}"));
    }

    #[test]
    fn faults_name_the_variable_and_the_next_step() {
        let error = |template: &str| expand(template, &versions()).unwrap_err();
        let unknown = error("r.example/c:{kube_version}");
        assert!(unknown.is_terminal());
        let text = unknown.to_string();
        assert!(
            text.starts_with("annotation olm.catalogImageTemplate has the unknown variable {kube_version}; use {kube_major_version}, "),
            "{text}"
        );
        assert_eq!(error("r.example/c:{kube_minor_version"), TemplateError::Unclosed);
        let missing = error("r.example/c:{openshift_minor_version}");
        assert!(!missing.is_terminal());
        assert!(
            missing
                .to_string()
                .contains("the version of OpenShift is unknown")
        );
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_brace_opens_after_expansion(template in "[{}a-z_:/.]{0,80}") {
            if let Ok(expanded) = expand(&template, &versions()) {
                prop_assert!(!expanded.contains('{'), "{expanded}");
            }
        }
    }
}
