//! What a signature of cosign states, the "simple signing" JSON.

use serde::Deserialize;

/// The kind of statement that cosign signs.
const KIND: &str = "cosign container image signature";

/// A statement: this digest may be used by this name.
#[derive(Debug, Deserialize)]
pub(crate) struct Statement {
    critical: Critical,
}

/// What must be understood; anything more is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Critical {
    #[serde(rename = "type")]
    kind: String,
    image: Image,
    identity: Identity,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    #[serde(rename = "docker-reference")]
    reference: String,
}

impl Statement {
    /// Reads a statement.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let statement: Self =
            serde_json::from_slice(text).map_err(|_| "a signed statement is malformed".to_owned())?;
        if statement.critical.kind != KIND {
            return Err("a signed statement is of another type than a container image signature".to_owned());
        }
        Ok(statement)
    }

    /// The digest that is signed.
    pub(crate) fn digest(&self) -> &str {
        &self.critical.image.digest
    }

    /// The name it is signed for.
    pub(crate) fn reference(&self) -> &str {
        &self.critical.identity.reference
    }
}
