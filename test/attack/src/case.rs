//! One attack: what is hostile, and how it must end.

use std::fmt;
use std::sync::Arc;

use olm_harness::stub::{Answer, Asked, Image};

/// Answers the requests for one repository of the hostile registry.
pub type Handler = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// The hostile part.
#[derive(Clone)]
pub enum Subject {
    /// Image of a ClusterCatalog.
    Catalog(Handler),
    /// Image of a bundle, which a ClusterExtension installs from a well-behaved catalog.
    Bundle(Handler),
    /// File-based catalog that is served, and whose package `hostile` a ClusterExtension asks for.
    Package(Handler),
}

/// The outcome that an attack must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The condition `Progressing` says so, in these words among others.
    Refused(&'static str),
    /// The condition `Progressing` names an error, or the content is taken: a mutation of which either is right.
    Answered,
    /// The content is within the limits: the catalog is served, or the bundle is installed.
    Taken,
}

/// One attack.
#[derive(Clone)]
pub struct Case {
    /// Name of the attack, a DNS label; it names the objects, too.
    pub name: String,
    /// The hostile part.
    pub subject: Subject,
    /// The outcome.
    pub expect: Expect,
}

impl Case {
    /// A catalog from `image`.
    pub fn catalog(name: impl Into<String>, image: Image, expect: Expect) -> Self {
        Self::of(name, Subject::Catalog(serving(image)), expect)
    }

    /// A bundle from `image`.
    pub fn bundle(name: impl Into<String>, image: Image, expect: Expect) -> Self {
        Self::of(name, Subject::Bundle(serving(image)), expect)
    }

    /// A case of any subject.
    pub fn of(name: impl Into<String>, subject: Subject, expect: Expect) -> Self {
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

/// A handler that serves an image as it is.
pub fn serving(image: Image) -> Handler {
    Arc::new(move |asked| image.serve(asked))
}
