//! Listings of an index: a page of a schema's objects, and all schemas.

use super::{
    KeyField, LIST, POSTING, SCHEMA, STRING,
    read::{BlobRange, Index, POSTING_BYTES, Records, u32_at, u64_at},
};
use crate::storage::{ReadMode, StorageError};

const LIST_BYTES: usize = 8;
const SCHEMA_BYTES: usize = 4;

/// Schemas with their numbers of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schemas {
    /// Name and number of objects of each schema, by name.
    pub counts: Vec<(String, u64)>,
    /// Number of further schemas.
    pub left_out: u64,
}

impl Index {
    /// Returns the ranges of the objects of a schema in file order: `limit` objects from `offset` on.
    pub(in crate::storage) fn page(
        &self,
        schema: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<BlobRange>, StorageError> {
        let Some(key) = self.find(schema, ReadMode::Blocking)? else {
            return Ok(Vec::new());
        };
        let (start, count) = self.list(KeyField::Schema, u64::from(key), ReadMode::Blocking)?;
        let (mut page, mut records) = (Vec::new(), Records::default());
        for at in (offset..count).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            let offset_of_posting = self.layout.postings(KeyField::Schema) + (start + at) * POSTING;
            let number = u64::from(u32_at(
                &self.read::<POSTING_BYTES>(offset_of_posting, ReadMode::Blocking)?,
                0,
            ));
            let record = records.get(self, number, ReadMode::Blocking)?;
            page.push(self.range(record)?);
        }
        Ok(page)
    }

    /// Returns the first schemas by name, at most `most`. The cost grows with these only.
    pub(in crate::storage) fn schemas(&self, most: usize) -> Result<Schemas, StorageError> {
        let all = self.layout.schemas;
        let returned = all.min(most as u64);
        let mut keys = vec![0; usize::try_from(returned * SCHEMA).unwrap_or_default()];
        self.read_into(&mut keys, self.layout.schemas(), ReadMode::Blocking)?;
        let mut counts = Vec::new();
        for key in keys.chunks_exact(SCHEMA_BYTES) {
            let key = u64::from(u32_at(key, 0));
            if key >= self.layout.strings {
                return Err(self.damaged());
            }
            let (_, count) = self.list(KeyField::Schema, key, ReadMode::Blocking)?;
            let text = self.read::<8>(self.layout.strings() + key * STRING, ReadMode::Blocking)?;
            counts.push((self.text(&text)?, count));
        }
        Ok(Schemas {
            counts,
            left_out: all - returned,
        })
    }

    fn text(&self, string: &[u8]) -> Result<String, StorageError> {
        let (start, length) = (u64::from(u32_at(string, 0)), u64::from(u32_at(string, 4)));
        if start + length > self.layout.text {
            return Err(self.damaged());
        }
        let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
        self.read_into(&mut text, self.layout.text() + start, ReadMode::Blocking)?;
        String::from_utf8(text).map_err(|_| self.damaged())
    }

    /// Returns the start and number of the postings of a string.
    pub(super) fn list(&self, field: KeyField, key: u64, mode: ReadMode) -> Result<(u64, u64), StorageError> {
        let list = self.read::<LIST_BYTES>(self.layout.lists(field) + key * LIST, mode)?;
        let (start, count) = (u64::from(u32_at(&list, 0)), u64::from(u32_at(&list, 4)));
        if start + count > self.layout.metas {
            return Err(self.damaged());
        }
        Ok((start, count))
    }

    /// Returns the range of a record's object.
    pub(super) fn range(&self, record: &[u8]) -> Result<BlobRange, StorageError> {
        let range = BlobRange {
            offset: u64_at(record, 0),
            length: u64::from(u32_at(record, 8)),
        };
        let end = range.offset.checked_add(range.length);
        if end.is_none_or(|end| end > self.content) {
            return Err(self.damaged());
        }
        Ok(range)
    }
}
