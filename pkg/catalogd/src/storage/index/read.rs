//! Searching an index by reads at offsets.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{Field, Layout, MAGIC, POSTING, RECORD, STRING};
use crate::storage::{StorageError, Wait, files};

/// How many records are looked at between two reads of the index.
const BATCH: u32 = 1024;
/// How many records are read at once.
const AHEAD: u64 = 64;
const HEADER_BYTES: usize = 32;
pub(super) const RECORD_BYTES: usize = 24;
pub(super) const POSTING_BYTES: usize = 4;

/// Which blobs are wanted; all filters must hold, exactly.
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
    /// Whether every blob is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A range of bytes of `catalog.jsonl` that holds whole lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where it begins.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u64,
}

/// An open index.
#[derive(Debug)]
pub(in crate::storage) struct Index {
    file: File,
    path: PathBuf,
    pub(super) layout: Layout,
    /// Size of `catalog.jsonl`.
    pub(super) content: u64,
}

/// What a filter selects, found piece by piece.
#[derive(Clone, Debug)]
pub struct Selection {
    wanted: [Option<u32>; 3],
    next: u64,
    left: u32,
    wait: Wait,
}

impl Selection {
    /// How many objects are still to be looked at; no more than these are selected.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// Whether its reads may wait for the disk.
    pub(crate) fn wait(&self) -> Wait {
        self.wait
    }
}

impl Index {
    /// The open file.
    pub(in crate::storage) fn file(&self) -> &File {
        &self.file
    }

    /// Opens an index of a `catalog.jsonl` of `content` bytes.
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
                what: "the index is not readable",
            });
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            layout,
            content,
        })
    }

    /// Starts a search. `None`: nothing can match. As upstream, blobs without a schema are in no
    /// filtered answer.
    pub(in crate::storage) fn select(
        &self,
        filter: &Filter,
        wait: Wait,
    ) -> Result<Option<Selection>, StorageError> {
        let mut wanted = [None; 3];
        let mut shortest: Option<(Field, u64, u64)> = None;
        for (slot, (field, text)) in wanted.iter_mut().zip([
            (Field::Schema, &filter.schema),
            (Field::Package, &filter.package),
            (Field::Name, &filter.name),
        ]) {
            let Some(text) = text else { continue };
            let Some(key) = self.find(text, wait)? else {
                return Ok(None);
            };
            let (start, count) = self.list(field, u64::from(key), wait)?;
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
            wait,
        }))
    }

    /// The next sections of a search, in file order, neighbours joined; `None` at its end. May be
    /// empty before that.
    pub(in crate::storage) fn next(
        &self,
        selection: &mut Selection,
    ) -> Result<Option<Vec<Section>>, StorageError> {
        if selection.left == 0 {
            return Ok(None);
        }
        let batch = selection.left.min(BATCH);
        let mut postings = vec![0; batch as usize * POSTING_BYTES];
        self.read_into(&mut postings, selection.next, selection.wait)?;
        selection.next += u64::from(batch) * POSTING;
        selection.left -= batch;
        let mut sections: Vec<Section> = Vec::new();
        let mut records = Records::default();
        for posting in postings.chunks_exact(POSTING_BYTES) {
            let number = u64::from(u32_at(posting, 0));
            let record = records.get(self, number, selection.wait)?;
            let keys = [u32_at(record, 12), u32_at(record, 16), u32_at(record, 20)];
            let fits = keys
                .iter()
                .zip(&selection.wanted)
                .all(|(key, wanted)| wanted.is_none_or(|wanted| wanted == *key));
            if !fits || keys.first() == Some(&0) {
                continue;
            }
            let section = self.section(record)?;
            match sections.last_mut() {
                Some(last) if last.offset + last.length == section.offset => last.length += section.length,
                _ => sections.push(section),
            }
        }
        Ok(Some(sections))
    }

    /// The key of a string, by binary search.
    pub(super) fn find(&self, text: &str, wait: Wait) -> Result<Option<u32>, StorageError> {
        let (mut low, mut high) = (0_u64, self.layout.strings);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.read::<8>(self.layout.strings() + middle * STRING, wait)?;
            let (start, length) = (u64::from(u32_at(&entry, 0)), u64::from(u32_at(&entry, 4)));
            if start + length > self.layout.text {
                return Err(self.damaged());
            }
            let mut found = vec![0; usize::try_from(length).unwrap_or_default()];
            self.read_into(&mut found, self.layout.text() + start, wait)?;
            match found.as_slice().cmp(text.as_bytes()) {
                std::cmp::Ordering::Equal => return Ok(u32::try_from(middle).ok()),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    pub(super) fn read<const N: usize>(&self, offset: u64, wait: Wait) -> Result<[u8; N], StorageError> {
        let mut bytes = [0; N];
        self.read_into(&mut bytes, offset, wait)?;
        Ok(bytes)
    }

    pub(super) fn read_into(&self, bytes: &mut [u8], offset: u64, wait: Wait) -> Result<(), StorageError> {
        files::read_exact_at(&self.file, bytes, offset, wait).map_err(StorageError::io("read", &self.path))
    }

    pub(super) fn damaged(&self) -> StorageError {
        StorageError::Damaged {
            path: self.path.clone(),
            what: "the index contradicts itself",
        }
    }
}

/// Some records that follow each other, read at once: what is selected mostly does.
#[derive(Default)]
pub(super) struct Records {
    first: u64,
    bytes: Vec<u8>,
}

impl Records {
    /// One of them; an error when there is none of this number.
    pub(super) fn get(&mut self, index: &Index, number: u64, wait: Wait) -> Result<&[u8], StorageError> {
        if number >= index.layout.metas {
            return Err(index.damaged());
        }
        if self.find(number).is_none() {
            let count = AHEAD.min(index.layout.metas.saturating_sub(number));
            self.first = number;
            self.bytes
                .resize(usize::try_from(count * RECORD).unwrap_or_default(), 0);
            index.read_into(&mut self.bytes, Layout::records() + number * RECORD, wait)?;
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
