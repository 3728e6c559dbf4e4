//! Index of a generation: finds the blobs of a schema, package or name.
//!
//! The index is one little-endian file, searched by reads at offsets without loading it:
//!
//! ```text
//! magic "OLMINDX2" | metas u32 | strings u32 | text bytes u64 | schemas u64
//! records   metas   x { offset u64, length u32, schema u32, package u32, name u32 }   in stream order
//! strings   strings x { start u32, length u32 }                                       sorted, "" is 0
//! text      bytes of the strings
//! lists     3 x strings x { start u32, count u32 }        schema, package, name: by string
//! postings  3 x metas   x record u32                      ascending within a list
//! schemas   schemas x string u32                          schemas among the strings, sorted, without ""
//! ```

mod build;
mod list;
mod read;
mod sort;

pub(super) use build::Builder;
pub use list::Schemas;
pub(super) use read::Index;
pub use read::{BlobRange, Filter, Selection};

const MAGIC: [u8; 8] = *b"OLMINDX2";
const HEADER: u64 = 32;
const RECORD: u64 = 24;
const STRING: u64 = 8;
const LIST: u64 = 8;
const POSTING: u64 = 4;
const SCHEMA: u64 = 4;

/// Key of a blob in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyField {
    Schema,
    Package,
    Name,
}

impl KeyField {
    const ALL: [Self; 3] = [Self::Schema, Self::Package, Self::Name];

    /// Returns the element of this field.
    fn of_mut<T>(self, [schema, package, name]: &mut [T; 3]) -> &mut T {
        match self {
            Self::Schema => schema,
            Self::Package => package,
            Self::Name => name,
        }
    }

    fn ordinal(self) -> u64 {
        match self {
            Self::Schema => 0,
            Self::Package => 1,
            Self::Name => 2,
        }
    }
}

/// Offsets of the parts of an index, from its numbers of metas and strings.
#[derive(Clone, Copy, Debug)]
struct Layout {
    metas: u64,
    strings: u64,
    text: u64,
    schemas: u64,
}

impl Layout {
    fn records() -> u64 {
        HEADER
    }

    fn strings(self) -> u64 {
        Self::records() + self.metas * RECORD
    }

    fn text(self) -> u64 {
        self.strings() + self.strings * STRING
    }

    fn lists(self, field: KeyField) -> u64 {
        self.text() + self.text + field.ordinal() * self.strings * LIST
    }

    fn postings(self, field: KeyField) -> u64 {
        self.text() + self.text + 3 * self.strings * LIST + field.ordinal() * self.metas * POSTING
    }

    fn schemas(self) -> u64 {
        self.postings(KeyField::Schema) + 3 * self.metas * POSTING
    }

    fn size(self) -> u64 {
        self.schemas() + self.schemas * SCHEMA
    }
}
