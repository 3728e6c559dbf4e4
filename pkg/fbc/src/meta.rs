//! Object of a catalog, of any schema.

/// Object of a catalog: schema, package and name, and its canonical bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The schema, such as `olm.bundle`; may be empty.
    pub schema: String,
    /// The package; empty on `olm.package` itself.
    pub package: String,
    /// The name; may be empty.
    pub name: String,
    /// Canonical JSON: sorted keys, no white space, one line, ending in a line feed.
    pub blob: Vec<u8>,
}
