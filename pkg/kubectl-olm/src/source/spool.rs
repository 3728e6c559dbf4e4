//! Temporary files for responses of catalogd.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};

use olm_text::name::CatalogName;

use super::error::SourceError;

/// A response in a temporary file, limited in size. Responses may be larger than memory.
pub(super) struct Spool {
    catalog: CatalogName,
    file: File,
    written: u64,
    limit: u64,
}

impl Spool {
    pub(super) fn new(catalog: &CatalogName, limit: u64) -> Result<Self, SourceError> {
        Ok(Self {
            catalog: catalog.clone(),
            file: tempfile::tempfile().map_err(Self::failed)?,
            written: 0,
            limit,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SourceError> {
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.written > self.limit {
            return Err(SourceError::TooLong {
                catalog: self.catalog.clone(),
                limit: self.limit,
            });
        }
        self.file.write_all(bytes).map_err(Self::failed)
    }

    pub(super) fn finish(mut self) -> Result<File, SourceError> {
        self.file.seek(SeekFrom::Start(0)).map_err(Self::failed)?;
        Ok(self.file)
    }

    fn failed(source: std::io::Error) -> SourceError {
        SourceError::Read {
            path: std::env::temp_dir(),
            source,
        }
    }
}
