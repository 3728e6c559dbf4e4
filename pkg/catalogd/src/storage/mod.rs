//! Content of catalogs on disk.
//!
//! `<root>/<catalog>/<generation>/` holds `catalog.jsonl` (all blobs, one a line), its gzip and zstd
//! forms, `index` and `manifest.json`. A generation is complete and synced before the symlink
//! `<root>/<catalog>/current` is swapped to it by one rename. Readers hold the generation they
//! opened, so that removing it does not disturb them. Nothing here reads a whole catalog into
//! memory.

mod error;
mod files;
mod forms;
mod generation;
mod index;
mod limits;
mod manifest;
mod name;
mod store;
mod write;

pub use error::StorageError;
pub use files::Wait;
pub use generation::{Encoding, Generation};
pub use index::{Filter, Schemas, Section, Selection};
pub use limits::Limits;
pub use manifest::{Counts, Manifest, Origin};
pub use name::{CatalogName, NameError};
pub use store::Store;
