//! Keywords in the `contents` of a row, and their parser.

use anyhow::{Context as _, bail};

/// A keyword in the `contents` of a row, which adds something to the bundle or to its entry in the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keyword {
    /// A CustomResourceDefinition that the CSV owns.
    Crd,
    /// A Deployment with its service account and a permission.
    Deployment,
    /// A Deployment whose image can never be pulled.
    BadImage,
    /// `ConfigMap` `test-configmap-<id>` with the version.
    ConfigMap,
    /// A second `ConfigMap`, `extra-configmap-<id>`.
    ExtraConfigMap,
    /// The ClusterServiceVersion names the Deployment as an object with the condition `Upgradeable`.
    NamesHolder,
    /// An object of a kind that bundles must not contain.
    Ingress,
    /// Omits the ClusterServiceVersion, which makes the bundle invalid.
    NoCsv,
    /// The image is not pushed.
    NoImage,
    /// Deprecates the bundle with a message.
    Deprecated(String),
    /// Variant of `Crd` with `size` at most 5.
    SmallCrd,
    /// Variant of `Crd` with an additional field `color`.
    WideCrd,
    /// Variant of `Crd` that also serves v1alpha1.
    TwoVersionsCrd,
    /// Webhooks of the Deployment: a validating one, and the conversion of the `Crd`.
    Webhooks,
    /// A group and version of the API that the Deployment serves.
    ApiService,
    /// The ClusterServiceVersion suggests the scenario's namespace, with labels.
    NamespaceTemplate,
    /// Declares another bundle format.
    Format(String),
    /// Requires a package in a range of versions: `NAME RANGE`.
    RequiresPackage(String),
    /// Requires the API of the scenario's CustomResourceDefinition.
    RequiresApi,
    /// Requires an installed bundle of a color, by a CEL expression.
    RequiresColor(String),
    /// Property of the bundle with a color.
    Color(String),
    /// Requires an invalid constraint.
    BrokenConstraint,
    /// Declares an install mode; AllNamespaces by default.
    InstallMode(String),
    /// Phases of support of the bundle's minor version: `NAME FROM TO; NAME FROM TO`, in days from today.
    Support(String),
    /// Lowest version of Kubernetes that the bundle supports.
    MinKubeVersion(String),
    /// Lowest version of Kubernetes that the catalog states for the bundle.
    ListedMinKubeVersion(String),
    /// Number of additional `CustomResourceDefinition`s of 820 kB each, which change with every version.
    LargeCrds(usize),
    /// Number of additional `ConfigMap`s, `many-NUMBER-<id>`, which change with every version.
    Many(usize),
    /// A property of the bundle, `TYPE=VALUE`, in the annotation of its CSV.
    Property(String),
    /// The catalog references the image at a registry that only a mirror serves.
    Mirrored,
}

impl Keyword {
    /// Parses a comma-separated list of keywords.
    pub fn parse_list(text: &str) -> anyhow::Result<Vec<Self>> {
        text.split(',')
            .map(str::trim)
            .filter(|keyword| !keyword.is_empty())
            .map(Self::parse)
            .collect()
    }

    fn parse(keyword: &str) -> anyhow::Result<Self> {
        if let Some((name, rest)) = keyword.split_once('(') {
            let argument = rest
                .strip_suffix(')')
                .with_context(|| format!("`{keyword}` has no `)`"))?
                .to_owned();
            return Ok(match name {
                "Deprecated" => Self::Deprecated(argument),
                "RequiresPackage" => Self::RequiresPackage(argument),
                "RequiresColor" => Self::RequiresColor(argument),
                "Color" => Self::Color(argument),
                "Format" => Self::Format(argument),
                "InstallMode" => Self::InstallMode(argument),
                "MinKubeVersion" => Self::MinKubeVersion(argument),
                "ListedMinKubeVersion" => Self::ListedMinKubeVersion(argument),
                "LargeCRDs" => Self::LargeCrds(argument.parse().context("LargeCRDs takes a number")?),
                "Many" => Self::Many(argument.parse().context("Many takes a number")?),
                "Property" => Self::Property(argument),
                "Support" => Self::Support(argument),
                _ => bail!("`{keyword}` is no keyword of a bundle's contents"),
            });
        }
        Ok(match keyword {
            "CRD" => Self::Crd,
            "SmallCRD" => Self::SmallCrd,
            "WideCRD" => Self::WideCrd,
            "TwoVersionsCRD" => Self::TwoVersionsCrd,
            "Webhooks" => Self::Webhooks,
            "APIService" => Self::ApiService,
            "NamespaceTemplate" => Self::NamespaceTemplate,
            "RequiresAPI" => Self::RequiresApi,
            "BrokenConstraint" => Self::BrokenConstraint,
            "Deployment" => Self::Deployment,
            "BadImage" => Self::BadImage,
            "ConfigMap" => Self::ConfigMap,
            "ExtraConfigMap" => Self::ExtraConfigMap,
            "NamesHolder" => Self::NamesHolder,
            "Ingress" => Self::Ingress,
            "NoCSV" => Self::NoCsv,
            "NoImage" => Self::NoImage,
            "Mirrored" => Self::Mirrored,
            _ => bail!("`{keyword}` is no keyword of a bundle's contents"),
        })
    }
}
