//! Search of an index by reads at offsets.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{KeyField, Layout, MAGIC, POSTING, RECORD, STRING};
use crate::storage::{ReadMode, StorageError, files};

/// Number of records that one call of [`Index::next`] examines.
const BATCH: u32 = 1024;
/// Number of records that are read at once.
const RECORDS_AT_ONCE: u64 = 64;
const HEADER_BYTES: usize = 32;
pub(super) const RECORD_BYTES: usize = 24;
pub(super) const POSTING_BYTES: usize = 4;

/// Filter of blobs; all fields must match exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The blob's schema.
    pub schema: Option<String>,
    /// The blob's package.
    pub package: Option<String>,
    /// The blob's name.
    pub name: Option<String>,
}

impl Filter {
    /// Reports whether the filter matches every blob.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Range of bytes in `catalog.jsonl` that consists of whole lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRange {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Open index file.
#[derive(Debug)]
pub(in crate::storage) struct Index {
    file: File,
    path: PathBuf,
    pub(super) layout: Layout,
    /// Size of `catalog.jsonl` in bytes.
    pub(super) content: u64,
}

/// Incremental search result.
#[derive(Clone, Debug)]
pub struct Selection {
    wanted: [Option<u32>; 3],
    next: u64,
    left: u32,
    mode: ReadMode,
}

impl Selection {
    /// Returns the number of objects left to examine, an upper bound of the objects selected.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Returns the blocking behaviour of its reads.
    pub(crate) fn mode(&self) -> ReadMode {
        self.mode
    }
}

impl Index {
    /// Returns the open file.
    pub(in crate::storage) fn file(&self) -> &File {
        &self.file
    }

    /// Opens the index of a `catalog.jsonl` of `content` bytes.
    pub(in crate::storage) fn open(path: &Path, content: u64) -> Result<Self, StorageError> {
        let file = File::open(path).map_err(StorageError::io("open", path))?;
        let size = file.metadata().map_err(StorageError::io("read", path))?.len();
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)
            .map_err(StorageError::io("read", path))?;
        let layout = Layout {
            metas: u64::from(u32_at(&header, 8)),
            strings: u64::from(u32_at(&header, 12)),
            text: u64_at(&header, 16),
            schemas: u64_at(&header, 24),
        };
        if !header.starts_with(&MAGIC) || layout.text > size || layout.schemas > size || layout.size() != size
        {
            return Err(StorageError::Damaged {
                path: path.to_owned(),
                what: "the index cannot be decoded",
            });
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            layout,
            content,
        })
    }

    /// Starts a search; `None` if nothing can match. Like upstream, filtered results exclude blobs without a schema.
    pub(in crate::storage) fn select(
        &self,
        filter: &Filter,
        mode: ReadMode,
    ) -> Result<Option<Selection>, StorageError> {
        let mut wanted = [None; 3];
        let mut shortest: Option<(KeyField, u64, u64)> = None;
        for (slot, (field, text)) in wanted.iter_mut().zip([
            (KeyField::Schema, &filter.schema),
            (KeyField::Package, &filter.package),
            (KeyField::Name, &filter.name),
        ]) {
            let Some(text) = text else { continue };
            let Some(key) = self.find(text, mode)? else {
                return Ok(None);
            };
            let (start, count) = self.list(field, u64::from(key), mode)?;
            *slot = Some(key);
            if shortest.is_none_or(|(_, _, least)| count < least) {
                shortest = Some((field, start, count));
            }
        }
        let Some((field, start, count)) = shortest else {
            return Ok(None);
        };
        Ok(Some(Selection {
            wanted,
            next: self.layout.postings(field) + start * POSTING,
            left: u32::try_from(count).map_err(|_| self.damaged())?,
            mode,
        }))
    }

    /// Returns the next ranges of a search in file order, adjacent ones joined; `None` at the end. A batch may be empty
    /// before the end.
    pub(in crate::storage) fn next(
        &self,
        selection: &mut Selection,
    ) -> Result<Option<Vec<BlobRange>>, StorageError> {
        if selection.left == 0 {
            return Ok(None);
        }
        let batch = selection.left.min(BATCH);
        let mut postings = vec![0; batch as usize * POSTING_BYTES];
        self.read_into(&mut postings, selection.next, selection.mode)?;
        selection.next += u64::from(batch) * POSTING;
        selection.left -= batch;
        let mut ranges: Vec<BlobRange> = Vec::new();
        let mut records = Records::default();
        for posting in postings.chunks_exact(POSTING_BYTES) {
            let number = u64::from(u32_at(posting, 0));
            let record = records.get(self, number, selection.mode)?;
            let keys = [u32_at(record, 12), u32_at(record, 16), u32_at(record, 20)];
            let fits = keys
                .iter()
                .zip(&selection.wanted)
                .all(|(key, wanted)| wanted.is_none_or(|wanted| wanted == *key));
            if !fits || keys.first() == Some(&0) {
                continue;
            }
            let range = self.range(record)?;
            match ranges.last_mut() {
                Some(last) if last.offset + last.length == range.offset => last.length += range.length,
                _ => ranges.push(range),
            }
        }
        Ok(Some(ranges))
    }

    /// Returns the key of a string, by binary search.
    pub(super) fn find(&self, text: &str, mode: ReadMode) -> Result<Option<u32>, StorageError> {
        let (mut low, mut high) = (0_u64, self.layout.strings);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.read::<8>(self.layout.strings() + middle * STRING, mode)?;
            let (start, length) = (u64::from(u32_at(&entry, 0)), u64::from(u32_at(&entry, 4)));
            if start + length > self.layout.text {
                return Err(self.damaged());
            }
            let mut found = vec![0; usize::try_from(length).unwrap_or_default()];
            self.read_into(&mut found, self.layout.text() + start, mode)?;
            match found.as_slice().cmp(text.as_bytes()) {
                std::cmp::Ordering::Equal => return Ok(u32::try_from(middle).ok()),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    pub(super) fn read<const N: usize>(&self, offset: u64, mode: ReadMode) -> Result<[u8; N], StorageError> {
        let mut bytes = [0; N];
        self.read_into(&mut bytes, offset, mode)?;
        Ok(bytes)
    }

    pub(super) fn read_into(
        &self,
        bytes: &mut [u8],
        offset: u64,
        mode: ReadMode,
    ) -> Result<(), StorageError> {
        files::read_exact_at(&self.file, bytes, offset, mode).map_err(StorageError::io("read", &self.path))
    }

    pub(super) fn damaged(&self) -> StorageError {
        StorageError::Damaged {
            path: self.path.clone(),
            what: "the index is inconsistent",
        }
    }
}

/// Buffer of consecutive records, read at once, since selected records are mostly adjacent.
#[derive(Default)]
pub(super) struct Records {
    first: u64,
    bytes: Vec<u8>,
}

impl Records {
    /// Returns a record; fails if its number is out of range.
    pub(super) fn get(&mut self, index: &Index, number: u64, mode: ReadMode) -> Result<&[u8], StorageError> {
        if number >= index.layout.metas {
            return Err(index.damaged());
        }
        if self.find(number).is_none() {
            let count = RECORDS_AT_ONCE.min(index.layout.metas.saturating_sub(number));
            self.first = number;
            self.bytes
                .resize(usize::try_from(count * RECORD).unwrap_or_default(), 0);
            index.read_into(&mut self.bytes, Layout::records() + number * RECORD, mode)?;
        }
        self.find(number).ok_or_else(|| index.damaged())
    }

    fn find(&self, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number.checked_sub(self.first)?.checked_mul(RECORD)?).ok()?;
        self.bytes.get(at..at.checked_add(RECORD_BYTES)?)
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|slice| slice.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|slice| slice.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}
