//! Writing an index. Holds offsets and the distinct keys while storing, never blobs.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
};

use olm_fbc::Meta;

use super::{Field, Layout, MAGIC};
use crate::storage::{Counts, StorageError};

/// Most metas of a catalog: what 24 bytes each may cost while storing.
const MAX_METAS: u64 = 4_000_000;
/// Most bytes of distinct schemas, packages and names.
const MAX_TEXT: u64 = 256 * 1024 * 1024;

struct Record {
    offset: u64,
    length: u32,
    /// In order of first sight until [`Builder::write`] sorts.
    keys: [u32; 3],
}

/// Collects where each meta lies.
pub(in crate::storage) struct Builder {
    records: Vec<Record>,
    strings: BTreeMap<String, u32>,
    text: u64,
    end: u64,
    counts: Counts,
}

impl Builder {
    pub(in crate::storage) fn new() -> Self {
        Self {
            records: Vec::new(),
            strings: BTreeMap::from([(String::new(), 0)]),
            text: 0,
            end: 0,
            counts: Counts::default(),
        }
    }

    /// Notes the next meta of the stream.
    pub(in crate::storage) fn add(&mut self, meta: &Meta) -> Result<(), StorageError> {
        let too_large = |what, limit| StorageError::TooLarge { what, limit };
        if self.records.len() as u64 >= MAX_METAS {
            return Err(too_large("objects", MAX_METAS));
        }
        let length = u32::try_from(meta.blob.len())
            .map_err(|_| too_large("bytes in one object", u64::from(u32::MAX)))?;
        let keys = [
            self.key(&meta.schema),
            self.key(&meta.package),
            self.key(&meta.name),
        ];
        if self.text > MAX_TEXT {
            return Err(too_large("bytes of names", MAX_TEXT));
        }
        self.records.push(Record {
            offset: self.end,
            length,
            keys,
        });
        self.end += u64::from(length);
        self.counts.metas += 1;
        match meta.schema.as_str() {
            "olm.package" => self.counts.packages += 1,
            "olm.channel" => self.counts.channels += 1,
            "olm.bundle" => self.counts.bundles += 1,
            _ => {}
        }
        Ok(())
    }

    pub(in crate::storage) fn counts(&self) -> Counts {
        self.counts
    }

    fn key(&mut self, text: &str) -> u32 {
        if let Some(&key) = self.strings.get(text) {
            return key;
        }
        // No more than three a meta, and metas are limited.
        let key = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
        self.strings.insert(text.to_owned(), key);
        self.text += text.len() as u64;
        key
    }

    /// Writes the file.
    pub(in crate::storage) fn write(self, file: &mut impl Write, path: &Path) -> Result<(), StorageError> {
        self.write_to(file).map_err(StorageError::io("write", path))
    }

    fn write_to(self, file: &mut impl Write) -> io::Result<()> {
        let layout = Layout {
            metas: self.records.len() as u64,
            strings: self.strings.len() as u64,
            text: self.text,
        };
        let mut rank = vec![0_u32; self.strings.len()];
        for (sorted, &seen) in (0_u32..).zip(self.strings.values()) {
            if let Some(slot) = rank.get_mut(seen as usize) {
                *slot = sorted;
            }
        }
        let ranked = |record: &Record, field: Field| {
            let seen = match field {
                Field::Schema => record.keys[0],
                Field::Package => record.keys[1],
                Field::Name => record.keys[2],
            };
            rank.get(seen as usize).copied().unwrap_or_default()
        };
        file.write_all(&MAGIC)?;
        file.write_all(&u32_of(layout.metas)?.to_le_bytes())?;
        file.write_all(&u32_of(layout.strings)?.to_le_bytes())?;
        file.write_all(&layout.text.to_le_bytes())?;
        for record in &self.records {
            file.write_all(&record.offset.to_le_bytes())?;
            file.write_all(&record.length.to_le_bytes())?;
            for field in Field::ALL {
                file.write_all(&ranked(record, field).to_le_bytes())?;
            }
        }
        let mut start = 0_u32;
        for text in self.strings.keys() {
            let length = u32_of(text.len() as u64)?;
            file.write_all(&start.to_le_bytes())?;
            file.write_all(&length.to_le_bytes())?;
            start = start.checked_add(length).ok_or(io::ErrorKind::FileTooLarge)?;
        }
        for text in self.strings.keys() {
            file.write_all(text.as_bytes())?;
        }
        for field in Field::ALL {
            let mut counts = vec![0_u32; self.strings.len()];
            for record in &self.records {
                if let Some(count) = counts.get_mut(ranked(record, field) as usize) {
                    *count += 1;
                }
            }
            let mut start = 0_u32;
            for count in counts {
                file.write_all(&start.to_le_bytes())?;
                file.write_all(&count.to_le_bytes())?;
                start += count;
            }
        }
        for field in Field::ALL {
            let mut order: Vec<(u32, u32)> = (0_u32..)
                .zip(&self.records)
                .map(|(number, record)| (ranked(record, field), number))
                .collect();
            order.sort_unstable();
            for (_, number) in order {
                file.write_all(&number.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

fn u32_of(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
