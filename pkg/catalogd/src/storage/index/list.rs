//! What an index tells beyond searches: a page of a schema's objects, and which schemas there are.

use super::{
    Field, LIST, POSTING, SCHEMA, STRING,
    read::{Index, POSTING_BYTES, Records, Section, u32_at, u64_at},
};
use crate::storage::{StorageError, Wait};

const LIST_BYTES: usize = 8;
const SCHEMA_BYTES: usize = 4;

/// How many objects there are of each schema, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schemas {
    /// Schemas with the number of their objects.
    pub counts: Vec<(String, u64)>,
    /// How many schemas more there are than were asked for.
    pub left_out: u64,
}

impl Index {
    /// Where the objects of a schema lie, in file order, `limit` of them from `offset` on.
    pub(in crate::storage) fn page(
        &self,
        schema: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Section>, StorageError> {
        let Some(key) = self.find(schema, Wait::ForDisk)? else {
            return Ok(Vec::new());
        };
        let (start, count) = self.list(Field::Schema, u64::from(key), Wait::ForDisk)?;
        let (mut page, mut records) = (Vec::new(), Records::default());
        for at in (offset..count).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            let place = self.layout.postings(Field::Schema) + (start + at) * POSTING;
            let number = u64::from(u32_at(&self.read::<POSTING_BYTES>(place, Wait::ForDisk)?, 0));
            let record = records.get(self, number, Wait::ForDisk)?;
            page.push(self.section(record)?);
        }
        Ok(page)
    }

    /// The first schemas by name, at most `most`. What it costs grows with these alone.
    pub(in crate::storage) fn schemas(&self, most: usize) -> Result<Schemas, StorageError> {
        let all = self.layout.schemas;
        let told = all.min(most as u64);
        let mut keys = vec![0; usize::try_from(told * SCHEMA).unwrap_or_default()];
        self.read_into(&mut keys, self.layout.schemas(), Wait::ForDisk)?;
        let mut counts = Vec::new();
        for key in keys.chunks_exact(SCHEMA_BYTES) {
            let key = u64::from(u32_at(key, 0));
            if key >= self.layout.strings {
                return Err(self.damaged());
            }
            let (_, count) = self.list(Field::Schema, key, Wait::ForDisk)?;
            let text = self.read::<8>(self.layout.strings() + key * STRING, Wait::ForDisk)?;
            counts.push((self.text(&text)?, count));
        }
        Ok(Schemas {
            counts,
            left_out: all - told,
        })
    }

    fn text(&self, string: &[u8]) -> Result<String, StorageError> {
        let (start, length) = (u64::from(u32_at(string, 0)), u64::from(u32_at(string, 4)));
        if start + length > self.layout.text {
            return Err(self.damaged());
        }
        let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
        self.read_into(&mut text, self.layout.text() + start, Wait::ForDisk)?;
        String::from_utf8(text).map_err(|_| self.damaged())
    }

    /// Where the postings of a string begin, and how many there are.
    pub(super) fn list(&self, field: Field, key: u64, wait: Wait) -> Result<(u64, u64), StorageError> {
        let list = self.read::<LIST_BYTES>(self.layout.lists(field) + key * LIST, wait)?;
        let (start, count) = (u64::from(u32_at(&list, 0)), u64::from(u32_at(&list, 4)));
        if start + count > self.layout.metas {
            return Err(self.damaged());
        }
        Ok((start, count))
    }

    /// Returns the place of a record's object.
    pub(super) fn section(&self, record: &[u8]) -> Result<Section, StorageError> {
        let section = Section {
            offset: u64_at(record, 0),
            length: u64::from(u32_at(record, 8)),
        };
        let end = section.offset.checked_add(section.length);
        if end.is_none_or(|end| end > self.content) {
            return Err(self.damaged());
        }
        Ok(section)
    }
}
