//! Cases: the hostile part of an attack and its expected outcome.

use std::fmt;
use std::sync::Arc;

use olm_harness::stub::{Answer, Image, RecordedRequest};

/// Handler of the requests for one repository of the hostile registry.
pub type Handler = Arc<dyn Fn(&RecordedRequest) -> Answer + Send + Sync>;

/// Hostile part of a case.
#[derive(Clone)]
pub enum Subject {
    /// Image of a ClusterCatalog.
    Catalog(Handler),
    /// Image of a bundle, which a ClusterExtension installs from a valid catalog.
    Bundle(Handler),
    /// File-based catalog that is served, and whose package `hostile` a ClusterExtension requests.
    Package(Handler),
}

/// Expected outcome of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The content is refused: the message of the condition `Progressing` contains this text.
    Refused(&'static str),
    /// The content is refused with any error, or accepted. For content whose validity depends on details, both are correct.
    Any,
    /// The content is within the limits: the catalog is served, or the bundle is installed.
    Accepted,
}

/// An attack with its expected outcome.
#[derive(Clone)]
pub struct Case {
    /// Name of the attack and of its objects, a DNS label.
    pub name: String,
    /// Hostile part.
    pub subject: Subject,
    /// Expected outcome.
    pub expect: Expect,
}

impl Case {
    /// Returns a case of a catalog from `image`.
    pub fn catalog(name: impl Into<String>, image: Image, expect: Expect) -> Self {
        Self::new(name, Subject::Catalog(serving(image)), expect)
    }

    /// Returns a case of a bundle from `image`.
    pub fn bundle(name: impl Into<String>, image: Image, expect: Expect) -> Self {
        Self::new(name, Subject::Bundle(serving(image)), expect)
    }

    /// Returns a case of any subject.
    pub fn new(name: impl Into<String>, subject: Subject, expect: Expect) -> Self {
        Self {
            name: name.into(),
            subject,
            expect,
        }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Case")
            .field("name", &self.name)
            .field("expect", &self.expect)
            .finish_non_exhaustive()
    }
}

/// Returns a handler that serves an image unchanged.
pub fn serving(image: Image) -> Handler {
    Arc::new(move |request| image.serve(request))
}

/// Attacks to perform: those whose `class/name` starts with one of these texts, or all without a text.
#[derive(Clone, Debug, Default)]
pub struct Selection(pub Vec<String>);

impl Selection {
    /// Returns true if the attack is selected.
    #[must_use]
    pub fn contains(&self, class: &str, name: &str) -> bool {
        let path = format!("{class}/{name}");
        self.0.is_empty() || self.0.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }

    /// Returns the selected attacks by class, without empty classes.
    #[must_use]
    pub fn select(&self, all: Vec<(&'static str, Vec<Case>)>) -> Vec<(&'static str, Vec<Case>)> {
        all.into_iter()
            .map(|(class, mut cases)| {
                cases.retain(|case| self.contains(class, &case.name));
                (class, cases)
            })
            .filter(|(_, cases)| !cases.is_empty())
            .collect()
    }
}
