//! One stored content of a catalog, open for reading.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{Filter, Manifest, Schemas, Section, Selection, StorageError, Wait, files, index::Index};

pub(super) const CONTENT: &str = "catalog.jsonl";
pub(super) const CONTENT_GZIP: &str = "catalog.jsonl.gz";
pub(super) const CONTENT_ZSTD: &str = "catalog.jsonl.zst";
pub(super) const INDEX: &str = "index";
pub(super) const MANIFEST: &str = "manifest.json";

/// Number of generations opened so far.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The forms in which a whole catalog is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Identity,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Complete content. It stays readable for as long as it is held, also after newer content took
/// its place and its files were removed.
#[derive(Debug)]
pub struct Generation {
    /// No other one of this process has it.
    number: u64,
    path: PathBuf,
    manifest: Manifest,
    content: File,
    gzip: File,
    zstd: File,
    index: Index,
}

impl Generation {
    /// Opens the generation in a folder. Only sizes are checked, see [`Generation::verify`].
    pub(super) fn open(path: &Path) -> Result<Self, StorageError> {
        let manifest = Manifest::read(&path.join(MANIFEST))?;
        let open = |name: &str| {
            let path = path.join(name);
            let file = File::open(&path).map_err(StorageError::io("open", &path))?;
            let size = file.metadata().map_err(StorageError::io("read", &path))?.len();
            if size == manifest.size(name) {
                Ok(file)
            } else {
                Err(StorageError::Damaged {
                    path,
                    what: "it has another size than when it was stored",
                })
            }
        };
        let (content, gzip, zstd) = (open(CONTENT)?, open(CONTENT_GZIP)?, open(CONTENT_ZSTD)?);
        open(INDEX)?;
        let index = Index::open(&path.join(INDEX), manifest.size(CONTENT))?;
        Ok(Self {
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            path: path.to_owned(),
            manifest,
            content,
            gzip,
            zstd,
            index,
        })
    }

    /// Reads all files, as they are open, and compares them with what was stored. `go_on` is told of every so many bytes
    /// and may end it. Blocks on the disk.
    ///
    /// # Errors
    /// A file is not what was stored, or cannot be read; or [`StorageError::Interrupted`].
    pub fn verify(&self, go_on: &dyn Fn(u64) -> bool) -> Result<(), StorageError> {
        let files = [
            (CONTENT, &self.content),
            (CONTENT_GZIP, &self.gzip),
            (CONTENT_ZSTD, &self.zstd),
            (INDEX, self.index.file()),
        ];
        for (name, file) in files {
            let path = self.path.join(name);
            if self.manifest.files.get(name) != Some(&files::measure(file, &path, go_on)?) {
                return Err(StorageError::Damaged {
                    path,
                    what: "it is not what was stored",
                });
            }
        }
        Ok(())
    }

    /// Returns the key under which answers from this content are kept. Content that is opened again has another key, since it may
    /// have been repaired.
    pub(crate) fn key(&self) -> String {
        format!("{}-{}", self.manifest.digest, self.number)
    }

    /// What is known of it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the whole content in a form, in bytes.
    pub fn size(&self, encoding: Encoding) -> u64 {
        self.manifest.size(match encoding {
            Encoding::Identity => CONTENT,
            Encoding::Gzip => CONTENT_GZIP,
            Encoding::Zstd => CONTENT_ZSTD,
        })
    }

    /// Length of its index, in bytes.
    pub fn index_size(&self) -> u64 {
        self.manifest.size(INDEX)
    }

    /// Fills `bytes` from a place of the content in a form. Blocks on the disk.
    ///
    /// # Errors
    /// The file cannot be read, or ends before `bytes` is full.
    pub fn read_at(&self, encoding: Encoding, bytes: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.read_waiting(encoding, bytes, offset, Wait::ForDisk)
    }

    /// As [`Generation::read_at`], waiting for the disk only as far as `wait` says.
    pub(crate) fn read_waiting(
        &self,
        encoding: Encoding,
        bytes: &mut [u8],
        offset: u64,
        wait: Wait,
    ) -> Result<(), StorageError> {
        let (file, name) = match encoding {
            Encoding::Identity => (&self.content, CONTENT),
            Encoding::Gzip => (&self.gzip, CONTENT_GZIP),
            Encoding::Zstd => (&self.zstd, CONTENT_ZSTD),
        };
        files::read_exact_at(file, bytes, offset, wait)
            .map_err(StorageError::io("read", self.path.join(name)))
    }

    /// Starts a search by a filter that is not empty; `None` when nothing can match. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn select(&self, filter: &Filter) -> Result<Option<Selection>, StorageError> {
        self.index.select(filter, Wait::ForDisk)
    }

    /// As [`Generation::select`], but neither this nor what is read of the search waits for the disk.
    ///
    /// # Errors
    /// The index cannot be read without waiting.
    pub fn select_cached(&self, filter: &Filter) -> Result<Option<Selection>, StorageError> {
        self.index.select(filter, Wait::Never)
    }

    /// The next sections of a search, `None` at its end. Blocks on the disk.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn next_sections(&self, selection: &mut Selection) -> Result<Option<Vec<Section>>, StorageError> {
        self.index.next(selection)
    }

    /// How many bytes a search selects. Blocks on the disk.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn length_of(&self, selection: &Selection) -> Result<u64, StorageError> {
        let (mut selection, mut length) = (selection.clone(), 0);
        while let Some(sections) = self.next_sections(&mut selection)? {
            length += sections.iter().map(|section| section.length).sum::<u64>();
        }
        Ok(length)
    }

    /// Where the objects of a schema lie, in file order, `limit` of them from `offset` on. Blocks on the disk.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn page(&self, schema: &str, offset: u64, limit: u64) -> Result<Vec<Section>, StorageError> {
        self.index.page(schema, offset, limit)
    }

    /// The first schemas by name, at most `most`, with the number of their objects. Blocks on the disk.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn schemas(&self, most: usize) -> Result<Schemas, StorageError> {
        self.index.schemas(most)
    }
}
