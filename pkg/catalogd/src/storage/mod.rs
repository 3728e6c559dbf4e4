//! Catalog content on disk.
//!
//! `<root>/<catalog>/<generation>/` holds `catalog.jsonl` (all blobs, one a line), its gzip and zstd encodings, `index`
//! and `manifest.json`. A generation is complete and synced before one rename points the symlink
//! `<root>/<catalog>/current` to it. Readers hold the generation they opened, so removing its files does not disturb
//! them. No code here reads a whole catalog into memory.

mod early_sync;
mod encodings;
mod error;
mod files;
mod generation;
mod index;
mod limits;
mod manifest;
mod name;
mod source;
mod store;
mod write;

pub use error::StorageError;
pub use files::ReadMode;
pub use generation::{Encoding, Generation};
pub use index::{BlobRange, Filter, Schemas, Selection};
pub use limits::Limits;
pub use manifest::{Counts, Manifest, Origin};
pub use name::{NameError, ValidCatalogName};
pub use source::{Source, VisitFile};
pub use store::Store;
