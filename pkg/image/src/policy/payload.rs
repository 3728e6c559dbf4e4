//! Statement that cosign signs, "simple signing" JSON.

use serde::Deserialize;

/// Type of the statement.
const KIND: &str = "cosign container image signature";

/// Statement: this digest may be used under this name.
#[derive(Debug, Deserialize)]
pub(crate) struct Statement {
    critical: Critical,
}

/// Critical part of the statement; unknown fields are rejected.
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
    /// Parses a statement.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let statement: Self =
            serde_json::from_slice(text).map_err(|_| "a signed statement is malformed".to_owned())?;
        if statement.critical.kind != KIND {
            return Err("a signed statement is of another type than a container image signature".to_owned());
        }
        Ok(statement)
    }

    /// Returns the signed digest.
    pub(crate) fn digest(&self) -> &str {
        &self.critical.image.digest
    }

    /// Returns the signed name.
    pub(crate) fn reference(&self) -> &str {
        &self.critical.identity.reference
    }
}
