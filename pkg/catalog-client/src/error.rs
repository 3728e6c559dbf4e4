//! Why a package could not be had.

/// A failed read of a catalog's package. All of these pass with time.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// catalogd (or this replica of it) does not have the content.
    #[error("cache for catalog {catalog:?} not found")]
    NoContent {
        /// The catalog.
        catalog: String,
    },
}

impl ClientError {
    /// Whether trying again cannot help. Never so: catalogd, its content and the way to it can
    /// all change without an edit by the user.
    pub fn terminal(&self) -> bool {
        false
    }

    /// The whole chain of causes in one line.
    pub fn message(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}
