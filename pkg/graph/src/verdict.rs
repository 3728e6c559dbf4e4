//! Verdict on an edge as a value.

use std::fmt::Write as _;

use olm_text::{counted, cut};
use serde::{Deserialize, Serialize};

/// Verdict on an upgrade from one bundle to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EdgeVerdict {
    /// Number of findings of CRD upgrade safety.
    pub findings: usize,
    /// The first finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// Rights that the bundle gains, at most the first 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rights: Vec<String>,
    /// Number of rules of the rights gained.
    pub rights_gained: usize,
    /// Images that only the new bundle uses, at most the first 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Number of these images.
    pub new_images: usize,
    /// Reason why the bundles could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl EdgeVerdict {
    /// Maximum length of a text in bytes.
    pub const TEXT_LIMIT: usize = 300;

    /// Returns the verdict of bundles that could not be compared.
    pub fn failed(error: &str) -> Self {
        Self {
            error: Some(cut(error, Self::TEXT_LIMIT).into_owned()),
            ..Self::default()
        }
    }

    /// Returns the verdict on the CRDs in a few words.
    pub fn crds(&self) -> String {
        match (&self.error, self.findings) {
            (Some(_), _) => "not compared".to_owned(),
            (None, 0) => "CRD-safe".to_owned(),
            (None, count) => counted(count, "CRD finding"),
        }
    }

    /// Returns the verdict as a short line.
    pub fn line(&self) -> String {
        // Writing into a String cannot fail.
        let mut line = self.crds();
        if self.rights_gained > 0 {
            let _ = write!(line, ", +{}", counted(self.rights_gained, "right"));
        }
        if self.new_images > 0 {
            let _ = write!(line, ", {}", counted(self.new_images, "new image"));
        }
        line
    }

    /// Returns the verdict with its details, one a line.
    pub fn details(&self) -> String {
        let mut lines = vec![self.line()];
        lines.extend(self.error.clone());
        lines.extend(self.finding.clone());
        lines.extend(self.rights.iter().take(5).map(|right| format!("gains {right}")));
        lines.extend(self.images.iter().take(5).map(|image| format!("image {image}")));
        lines.join("\n")
    }
}
