//! Writing an index in memory that does not grow with the catalog: what must be sorted is sorted on disk
//! when it is much.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use olm_fbc::Meta;

use super::{
    Field, Layout, MAGIC,
    sort::{Scratch, Sorter},
};
use crate::storage::{Counts, StorageError};

/// Most bytes of distinct schemas, packages and names.
const MAX_TEXT: u64 = 256 * 1024 * 1024;

/// Collects where each meta lies.
pub(in crate::storage) struct Builder {
    folder: PathBuf,
    /// Where each meta lies: offset u64, length u32.
    places: Scratch,
    /// Every field of every meta by its text; the number is [`Occurrence`].
    keys: Sorter,
    metas: u32,
    /// Most metas.
    most: u32,
    end: u64,
    counts: Counts,
}

/// Which field of which meta, as one number that sorts by field first.
#[derive(Clone, Copy)]
struct Occurrence {
    field: Field,
    meta: u32,
}

impl Occurrence {
    fn number(self) -> u64 {
        (self.field.ordinal() << 32) | u64::from(self.meta)
    }

    fn of(number: u64) -> Option<Self> {
        let field = Field::ALL
            .into_iter()
            .find(|field| field.ordinal() == number >> 32)?;
        let meta = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        Some(Self { field, meta })
    }
}

impl Builder {
    /// `folder` is where temporary files may be made, `most` how many metas there may be.
    pub(in crate::storage) fn new(folder: &Path, most: u32) -> Self {
        Self {
            most,
            folder: folder.to_owned(),
            places: Scratch::new(folder),
            keys: Sorter::new(folder),
            metas: 0,
            end: 0,
            counts: Counts::default(),
        }
    }

    /// Notes the next meta of the stream.
    pub(in crate::storage) fn add(&mut self, meta: &Meta) -> Result<(), StorageError> {
        let too_large = |what, limit| StorageError::TooLarge { what, limit };
        if self.metas >= self.most {
            return Err(too_large("objects", u64::from(self.most)));
        }
        let length = u32::try_from(meta.blob.len())
            .map_err(|_| too_large("bytes in one object", u64::from(u32::MAX)))?;
        self.note(meta, length)
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

    fn note(&mut self, meta: &Meta, length: u32) -> io::Result<()> {
        self.places.write(&self.end.to_le_bytes())?;
        self.places.write(&length.to_le_bytes())?;
        for field in Field::ALL {
            let text = match field {
                Field::Schema => &meta.schema,
                Field::Package => &meta.package,
                Field::Name => &meta.name,
            };
            let occurrence = Occurrence {
                field,
                meta: self.metas,
            };
            // The same field of the meta before is as many items ago as there are fields.
            self.keys
                .push(text.as_bytes(), occurrence.number(), Field::ALL.len())?;
        }
        Ok(())
    }

    pub(in crate::storage) fn counts(&self) -> Counts {
        self.counts
    }

    /// Writes the file.
    pub(in crate::storage) fn write(self, file: &mut impl Write, path: &Path) -> Result<(), StorageError> {
        let mut sections = Sections::new(&self.folder);
        let failed = StorageError::io("write", path);
        self.keys
            .for_each(|text, number| sections.add(text, number))
            .and_then(|()| sections.end_string())
            .and_then(|()| sections.finish(u64::from(self.metas), self.places, file))
            .map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => StorageError::TooLarge {
                    what: "bytes of names",
                    limit: MAX_TEXT,
                },
                _ => failed(error),
            })
    }
}

/// The parts of the file behind the records, each written from its beginning to its end while the sorted keys
/// go by.
struct Sections {
    strings: Scratch,
    text: Scratch,
    /// By field.
    lists: [Scratch; 3],
    /// By field.
    postings: [Scratch; 3],
    /// The strings that are schemas, and how many these are.
    schemas: Scratch,
    schema_count: u32,
    /// The string of every field of every meta, by meta.
    records: Sorter,
    /// Bytes of text so far, strings so far.
    length: u64,
    count: u32,
    /// The string that goes by.
    current: Vec<u8>,
    /// Postings of each field before and up to the current string.
    before: [u32; 3],
    so_far: [u32; 3],
}

impl Sections {
    fn new(folder: &Path) -> Self {
        let scratch = || Scratch::new(folder);
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
            // The empty string is the first one, also when nothing has it.
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

    /// The current string has no more occurrences.
    fn end_string(&mut self) -> io::Result<()> {
        let length = self.current.len() as u64;
        self.strings.write(&u32_of(self.length)?.to_le_bytes())?;
        self.strings.write(&u32_of(length)?.to_le_bytes())?;
        self.text.write(&self.current)?;
        for field in Field::ALL {
            let (before, so_far) = (field.of_mut(&mut self.before), *field.of_mut(&mut self.so_far));
            let list = field.of_mut(&mut self.lists);
            list.write(&before.to_le_bytes())?;
            let count = so_far - *before;
            list.write(&count.to_le_bytes())?;
            *before = so_far;
            if matches!(field, Field::Schema) && count > 0 && !self.current.is_empty() {
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

    fn finish(self, metas: u64, places: Scratch, file: &mut impl Write) -> io::Result<()> {
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
        let mut places = places.read()?;
        let mut place = [0; 12];
        let mut field = 0;
        self.records.for_each(|_, number| {
            if field == 0 {
                io::Read::read_exact(&mut places, &mut place)?;
                file.write_all(&place)?;
            }
            field = (field + 1) % Field::ALL.len();
            let string = u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
            file.write_all(&string.to_le_bytes())
        })?;
        let rest = [self.strings, self.text].into_iter();
        for section in rest.chain(self.lists).chain(self.postings).chain([self.schemas]) {
            io::copy(&mut section.read()?, file)?;
        }
        Ok(())
    }
}

fn u32_of(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
