//! Builds an index in memory that does not grow with the catalog: large sorts spill to disk.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use olm_fbc::Meta;

use super::{
    KeyField, Layout, MAGIC,
    sort::{ScratchFile, Sorter},
};
use crate::storage::{Counts, StorageError};

/// Maximum size of all distinct schemas, packages and names, in bytes.
const MAX_TEXT: u64 = 256 * 1024 * 1024;

/// Builder of an index from a stream of metas.
pub(in crate::storage) struct Builder {
    folder: PathBuf,
    /// Location of each meta: offset u64, length u32.
    locations: ScratchFile,
    /// Every key of every meta by its text; the number is an [`Occurrence`].
    keys: Sorter,
    metas: u32,
    /// Maximum number of metas.
    most: u32,
    end: u64,
    counts: Counts,
}

/// Key of a meta, encoded as a number that sorts by key field first.
#[derive(Clone, Copy)]
struct Occurrence {
    field: KeyField,
    meta: u32,
}

impl Occurrence {
    fn number(self) -> u64 {
        (self.field.ordinal() << 32) | u64::from(self.meta)
    }

    fn of(number: u64) -> Option<Self> {
        let field = KeyField::ALL
            .into_iter()
            .find(|field| field.ordinal() == number >> 32)?;
        let meta = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        Some(Self { field, meta })
    }
}

impl Builder {
    /// Creates a builder with temporary files in `folder` for at most `most` metas.
    pub(in crate::storage) fn new(folder: &Path, most: u32) -> Self {
        Self {
            most,
            folder: folder.to_owned(),
            locations: ScratchFile::new(folder),
            keys: Sorter::new(folder),
            metas: 0,
            end: 0,
            counts: Counts::default(),
        }
    }

    /// Adds the next meta of the stream.
    pub(in crate::storage) fn add(&mut self, meta: &Meta) -> Result<(), StorageError> {
        let too_large = |what, limit| StorageError::TooLarge { what, limit };
        if self.metas >= self.most {
            return Err(too_large("objects", u64::from(self.most)));
        }
        let length = u32::try_from(meta.blob.len())
            .map_err(|_| too_large("bytes in one object", u64::from(u32::MAX)))?;
        self.record(meta, length)
            .map_err(StorageError::io("write an index in", &self.folder))?;
        self.metas += 1;
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

    fn record(&mut self, meta: &Meta, length: u32) -> io::Result<()> {
        self.locations.write(&self.end.to_le_bytes())?;
        self.locations.write(&length.to_le_bytes())?;
        for field in KeyField::ALL {
            let text = match field {
                KeyField::Schema => &meta.schema,
                KeyField::Package => &meta.package,
                KeyField::Name => &meta.name,
            };
            let occurrence = Occurrence {
                field,
                meta: self.metas,
            };
            // The same field of the previous meta is as many items ago as there are fields.
            self.keys
                .push(text.as_bytes(), occurrence.number(), KeyField::ALL.len())?;
        }
        Ok(())
    }

    pub(in crate::storage) fn counts(&self) -> Counts {
        self.counts
    }

    /// Writes the index file.
    pub(in crate::storage) fn write(self, file: &mut impl Write, path: &Path) -> Result<(), StorageError> {
        let mut writer = IndexWriter::new(&self.folder);
        let failed = StorageError::io("write", path);
        self.keys
            .for_each(|text, number| writer.add(text, number))
            .and_then(|()| writer.end_string())
            .and_then(|()| writer.finish(u64::from(self.metas), self.locations, file))
            .map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => StorageError::TooLarge {
                    what: "bytes of names",
                    limit: MAX_TEXT,
                },
                _ => failed(error),
            })
    }
}

/// Parts of the file behind the header, written sequentially while the sorted keys pass by.
struct IndexWriter {
    strings: ScratchFile,
    text: ScratchFile,
    /// Lists by field.
    lists: [ScratchFile; 3],
    /// Postings by field.
    postings: [ScratchFile; 3],
    /// Strings that are schemas, and their count.
    schemas: ScratchFile,
    schema_count: u32,
    /// Strings of all fields of every meta, by meta.
    records: Sorter,
    /// Size of the text so far; number of strings so far.
    length: u64,
    count: u32,
    /// The current string.
    current: Vec<u8>,
    /// Number of postings of each field before, and including, the current string.
    before: [u32; 3],
    so_far: [u32; 3],
}

impl IndexWriter {
    fn new(folder: &Path) -> Self {
        let scratch = || ScratchFile::new(folder);
        Self {
            strings: scratch(),
            text: scratch(),
            lists: std::array::from_fn(|_| scratch()),
            postings: std::array::from_fn(|_| scratch()),
            schemas: scratch(),
            schema_count: 0,
            records: Sorter::new(folder),
            length: 0,
            count: 0,
            // The empty string comes first, also if no meta has it.
            current: Vec::new(),
            before: [0; 3],
            so_far: [0; 3],
        }
    }

    fn add(&mut self, text: &[u8], number: u64) -> io::Result<()> {
        if text != self.current {
            self.end_string()?;
            self.current.clear();
            self.current.extend_from_slice(text);
        }
        let Some(Occurrence { field, meta }) = Occurrence::of(number) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let by_meta = (u64::from(meta) * 4 + field.ordinal()) << 32;
        self.records.push(b"", by_meta | u64::from(self.count), 1)?;
        field.of_mut(&mut self.postings).write(&meta.to_le_bytes())?;
        *field.of_mut(&mut self.so_far) += 1;
        Ok(())
    }

    /// Ends the current string: it has no more occurrences.
    fn end_string(&mut self) -> io::Result<()> {
        let length = self.current.len() as u64;
        self.strings.write(&u32_of(self.length)?.to_le_bytes())?;
        self.strings.write(&u32_of(length)?.to_le_bytes())?;
        self.text.write(&self.current)?;
        for field in KeyField::ALL {
            let (before, so_far) = (field.of_mut(&mut self.before), *field.of_mut(&mut self.so_far));
            let list = field.of_mut(&mut self.lists);
            list.write(&before.to_le_bytes())?;
            let count = so_far - *before;
            list.write(&count.to_le_bytes())?;
            *before = so_far;
            if matches!(field, KeyField::Schema) && count > 0 && !self.current.is_empty() {
                self.schemas.write(&self.count.to_le_bytes())?;
                self.schema_count += 1;
            }
        }
        self.length += length;
        self.count += 1;
        if self.length > MAX_TEXT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    }

    fn finish(self, metas: u64, locations: ScratchFile, file: &mut impl Write) -> io::Result<()> {
        let layout = Layout {
            metas,
            strings: u64::from(self.count),
            text: self.length,
            schemas: u64::from(self.schema_count),
        };
        file.write_all(&MAGIC)?;
        file.write_all(&u32_of(layout.metas)?.to_le_bytes())?;
        file.write_all(&u32_of(layout.strings)?.to_le_bytes())?;
        file.write_all(&layout.text.to_le_bytes())?;
        file.write_all(&layout.schemas.to_le_bytes())?;
        let mut locations = locations.read()?;
        let mut location = [0; 12];
        let mut field = 0;
        self.records.for_each(|_, number| {
            if field == 0 {
                io::Read::read_exact(&mut locations, &mut location)?;
                file.write_all(&location)?;
            }
            field = (field + 1) % KeyField::ALL.len();
            let string = u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
            file.write_all(&string.to_le_bytes())
        })?;
        let rest = [self.strings, self.text].into_iter();
        for part in rest.chain(self.lists).chain(self.postings).chain([self.schemas]) {
            io::copy(&mut part.read()?, file)?;
        }
        Ok(())
    }
}

fn u32_of(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
