//! Errors of catalog files.

use olm_yaml::YamlError;

/// Maximum length of a text of a catalog in an error, in bytes.
pub(crate) const MAX_SHOWN: usize = 256;
/// Maximum number of keys in an error.
pub(crate) const MAX_SHOWN_KEYS: usize = 8;

/// Reason why a catalog file cannot be read. `document` counts from 1.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The reader failed.
    #[error("cannot read the catalog file")]
    Read {
        /// The reader's error.
        source: std::io::Error,
    },
    /// A meta is longer than the limit.
    #[error("a meta is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A meta is nested deeper than the limit.
    #[error("a meta is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// The file has more metas than the limit.
    #[error("the file has more than {limit} metas")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A meta has more keys than the limit.
    #[error("a meta has more than {limit} keys")]
    TooManyKeys {
        /// The limit.
        limit: usize,
    },
    /// The schema, package or name of a meta is longer than the limit.
    #[error("the {key} of a meta is longer than {limit} bytes")]
    NameTooLong {
        /// The key.
        key: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The text of a meta is neither JSON nor YAML, or takes too much memory.
    #[error(transparent)]
    Text(YamlError),
    /// A meta is not an object.
    #[error("a meta must be an object")]
    NotAnObject,
    /// Keys differ in case only.
    #[error("duplicate keys for key {}: [{}]", olm_version::go_quote(key), keys.join(" "))]
    DuplicateKeys {
        /// The key in folded case, cut if it is long.
        key: String,
        /// The keys as written, cut if they are long; `…` stands for the keys after the first ones.
        keys: Vec<String>,
    },
    /// `schema`, `package` or `name` is not a string.
    #[error(
        "expected value for key {} to be a string, got {found}",
        olm_version::go_quote(key)
    )]
    NotAString {
        /// The key.
        key: &'static str,
        /// JSON type of the value.
        found: &'static str,
    },
    /// Position of the defective meta in the file.
    #[error("meta {document} of the file")]
    Document {
        /// Number of the meta, from 1.
        document: usize,
        /// Defect, with its own source.
        #[source]
        fault: Box<DecodeError>,
    },
}

impl From<YamlError> for DecodeError {
    fn from(error: YamlError) -> Self {
        match error {
            YamlError::Read { source } => Self::Read { source },
            YamlError::TooLarge { limit } => Self::TooLarge { limit },
            YamlError::TooDeep { limit } => Self::TooDeep { limit },
            error => Self::Text(error),
        }
    }
}
