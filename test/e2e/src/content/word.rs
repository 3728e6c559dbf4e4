//! The vocabulary of a bundle's contents.

use anyhow::{Context as _, bail};

/// One word of a row's `contents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// A CustomResourceDefinition that the CSV owns.
    Crd,
    /// A Deployment with its service account and a permission.
    Deployment,
    /// A Deployment whose image can never become ready.
    BadImage,
    /// `ConfigMap` `test-configmap-<id>` that holds the version.
    ConfigMap,
    /// A second `ConfigMap`, `extra-configmap-<id>`.
    ExtraConfigMap,
    /// An object of a kind that bundles must not hold.
    Ingress,
    /// Leaves the ClusterServiceVersion out: no valid bundle.
    NoCsv,
    /// The image is not pushed.
    NoImage,
    /// Deprecates the bundle with a message.
    Deprecated(String),
    /// A CustomResourceDefinition as `Crd`, in which `size` is at most 5.
    SmallCrd,
    /// A CustomResourceDefinition as `Crd`, which also serves v1alpha1.
    TwoVersionsCrd,
    /// Webhooks that the Deployment serves: one that validates, and the conversion of the `Crd`.
    Webhooks,
    /// The image is said to hold another format.
    Format(String),
    /// Needs a package in a range of versions: `NAME RANGE`.
    RequiresPackage(String),
    /// Needs the API of the scenario's CustomResourceDefinition.
    RequiresApi,
    /// Needs an installed bundle of a color, by an expression.
    RequiresColor(String),
    /// Has a color.
    Color(String),
    /// Needs something that cannot be read.
    BrokenConstraint,
    /// Declares an install mode; AllNamespaces when there is none.
    InstallMode(String),
    /// So many more `CustomResourceDefinition`s of 820 kB each, which change with every version.
    LargeCrds(usize),
    /// So many more `ConfigMap`s, `many-NUMBER-<id>`, which change with every version.
    Many(usize),
    /// A property of the bundle, `TYPE=VALUE`, as its CSV's annotation has them.
    Property(String),
    /// The catalog names the image on a registry that only a mirror serves.
    Mirrored,
}

impl Word {
    /// Parses a comma-separated list of words.
    pub fn parse_list(text: &str) -> anyhow::Result<Vec<Self>> {
        text.split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(Self::parse)
            .collect()
    }

    fn parse(word: &str) -> anyhow::Result<Self> {
        if let Some((name, rest)) = word.split_once('(') {
            let argument = rest
                .strip_suffix(')')
                .with_context(|| format!("`{word}` has no `)`"))?
                .to_owned();
            return Ok(match name {
                "Deprecated" => Self::Deprecated(argument),
                "RequiresPackage" => Self::RequiresPackage(argument),
                "RequiresColor" => Self::RequiresColor(argument),
                "Color" => Self::Color(argument),
                "Format" => Self::Format(argument),
                "InstallMode" => Self::InstallMode(argument),
                "LargeCRDs" => Self::LargeCrds(argument.parse().context("LargeCRDs takes a number")?),
                "Many" => Self::Many(argument.parse().context("Many takes a number")?),
                "Property" => Self::Property(argument),
                _ => bail!("`{word}` is no word of a bundle's contents"),
            });
        }
        Ok(match word {
            "CRD" => Self::Crd,
            "SmallCRD" => Self::SmallCrd,
            "TwoVersionsCRD" => Self::TwoVersionsCrd,
            "Webhooks" => Self::Webhooks,
            "RequiresAPI" => Self::RequiresApi,
            "BrokenConstraint" => Self::BrokenConstraint,
            "Deployment" => Self::Deployment,
            "BadImage" => Self::BadImage,
            "ConfigMap" => Self::ConfigMap,
            "ExtraConfigMap" => Self::ExtraConfigMap,
            "Ingress" => Self::Ingress,
            "NoCSV" => Self::NoCsv,
            "NoImage" => Self::NoImage,
            "Mirrored" => Self::Mirrored,
            _ => bail!("`{word}` is no word of a bundle's contents"),
        })
    }
}
