//! Deserialization of objects without a spec.
//!
//! The API server admits a ClusterExtension or ClusterObjectSet without a spec. If such an object failed to decode,
//! every list with it would fail and stop the controller. An absent spec therefore reads as the default, which installs
//! nothing.

/// Implements `Deserialize` for a spec derived with `#[serde(remote = "Self")]`: absent or null is the default.
macro_rules! default_when_absent {
    ($spec:ident) => {
        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Present($spec);
                impl<'de> serde::Deserialize<'de> for Present {
                    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        $spec::deserialize(deserializer).map(Self)
                    }
                }
                // An absent member is offered to its type as an option.
                let present = <Option<Present> as serde::Deserialize>::deserialize(deserializer)?;
                Ok(present.map(|Present(spec)| spec).unwrap_or_default())
            }
        }

        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $spec::serialize(self, serializer)
            }
        }
    };
}
pub(crate) use default_when_absent;
