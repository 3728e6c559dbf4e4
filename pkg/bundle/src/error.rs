//! Errors of reading and rendering a bundle. Upstream's messages stay word for word, because clients match on them.

use thiserror::Error;

use crate::config::MAX_NAMESPACES;

/// A bundle that cannot be read. Another bundle image is needed.
#[derive(Debug, Error)]
pub enum ParseError {
    /// A file that every bundle must have is missing.
    #[error("open {path}: no such file or directory")]
    MissingFile {
        /// The path inside the bundle.
        path: String,
    },
    /// `manifests` is flat by definition.
    #[error(
        "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: found \"{path}\""
    )]
    Subdirectory {
        /// The directory found.
        path: String,
    },
    /// A manifest is not a stream of Kubernetes objects.
    #[error("error parsing objects in \"{path}\": {detail}")]
    Manifest {
        /// The file.
        path: String,
        /// Description of the defect.
        detail: String,
    },
    /// A metadata file has wrong content.
    #[error("failed to unmarshal {path}: {detail}")]
    Metadata {
        /// The file.
        path: String,
        /// Description of the defect.
        detail: String,
    },
    /// The CSV's own `olm.properties` annotation cannot be extended.
    #[error("failed to unmarshal csv.metadata.annotations['olm.properties']: {detail}")]
    PropertiesAnnotation {
        /// Description of the defect.
        detail: String,
    },
    /// The bundle has no `ClusterServiceVersion`.
    #[error("no ClusterServiceVersion found in \"manifests\"")]
    NoCsv,
    /// The image holds something other than a registry+v1 bundle.
    #[error("the bundle's format is \"{found}\"{what}: only registry+v1 bundles can be installed")]
    Format {
        /// The format's name, as the image declares it.
        found: String,
        /// Details about the format; a phrase that begins with a comma.
        what: &'static str,
    },
    /// Several errors, one line each, upstream's first error first.
    #[error("{}", lines(.0))]
    Multiple(Vec<ParseError>),
    /// The bundle exceeds a limit.
    #[error("bundle is too large: {what} is {actual}, the limit is {limit}")]
    TooLarge {
        /// Description of the counted items.
        what: String,
        /// Actual count or size.
        actual: usize,
        /// Largest permitted count or size.
        limit: usize,
    },
}

/// Maximum number of errors in a message.
const MAX_SHOWN: usize = 20;

fn lines(findings: &[ParseError]) -> String {
    let mut lines: Vec<String> = findings.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if findings.len() > MAX_SHOWN {
        lines.push(format!("and {} more findings", findings.len() - MAX_SHOWN));
    }
    lines.join("\n")
}

impl ParseError {
    /// Returns true if a retry is pointless until the catalog offers another image or the spec asks for one, as for
    /// content of another format. Other defects may be fixed under the same tag.
    pub fn terminal(&self) -> bool {
        matches!(self, Self::Format { .. })
    }
}

/// A bundle that cannot be rendered with the given options.
#[derive(Debug, Error)]
pub enum RenderError {
    /// The bundle uses something that cannot be installed at all, or not with these options.
    #[error("unsupported bundle: {0}")]
    Unsupported(String),
    /// `spec.config` does not fit the bundle; only a change of the extension helps.
    #[error("invalid ClusterExtension configuration: invalid configuration: {text}")]
    Config {
        /// Description of the defect, in upstream's words.
        text: String,
        /// Permitted configuration, as one sentence.
        allowed: String,
    },
    /// `spec.config` has the right shape but a value that Kubernetes refuses.
    #[error("invalid deploymentConfig: {0}")]
    DeploymentConfig(String),
    /// The bundle contradicts itself; one line per finding.
    #[error("{0}")]
    Invalid(String),
    /// The target namespaces contradict the bundle's install modes.
    #[error("invalid option(s): {0}")]
    Options(String),
    /// The namespace that the bundle suggests cannot be used.
    #[error(
        "the bundle suggests no usable install namespace: {0}. Create the ClusterExtension again with spec.namespace"
    )]
    InstallNamespace(String),
    /// No namespace has the labels of `watchNamespaceSelector`.
    #[error(
        "no namespace matches watchNamespaceSelector: label the namespaces that the operator is to watch, and it continues \
         automatically; nothing changes before, since an operator without namespaces watches all of them"
    )]
    NoNamespaces,
    /// More namespaces have the labels of `watchNamespaceSelector` than an operator may watch.
    #[error(
        "watchNamespaceSelector matches more than {MAX_NAMESPACES} namespaces: narrow the selector, or choose an install mode that \
         watches all namespaces"
    )]
    TooManyNamespaces,
    /// The namespaces of `watchNamespaceSelector` are not known.
    #[error("the namespaces that watchNamespaceSelector matches are not known")]
    UnknownNamespaces,
    /// A certificate that [`serving_certificates`](crate::serving_certificates) asks for is missing.
    #[error("no serving certificate was provided for secret \"{secret_name}\"")]
    MissingCertificate {
        /// Name of the Secret that would hold it.
        secret_name: String,
    },
}

impl RenderError {
    /// Returns true if a retry is pointless until the extension's spec changes.
    pub fn terminal(&self) -> bool {
        matches!(self, Self::Config { .. } | Self::DeploymentConfig(_))
    }

    /// Returns the permitted configuration as one sentence, if `spec.config` does not fit the bundle.
    pub fn allowed(&self) -> Option<&str> {
        match self {
            Self::Config { allowed, .. } => Some(allowed),
            _ => None,
        }
    }

    /// Returns true if the extension's `spec.config` is invalid (condition reason `InvalidConfiguration`).
    pub fn is_configuration(&self) -> bool {
        self.terminal()
    }
}
