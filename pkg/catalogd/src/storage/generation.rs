//! Stored content of a catalog, open for reading.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    BlobRange, Filter, Manifest, Origin, ReadMode, Schemas, Selection, StorageError, files, index::Index,
};

pub(super) const CONTENT: &str = "catalog.jsonl";
pub(super) const CONTENT_GZIP: &str = "catalog.jsonl.gz";
pub(super) const CONTENT_ZSTD: &str = "catalog.jsonl.zst";
pub(super) const INDEX: &str = "index";
pub(super) const MANIFEST: &str = "manifest.json";

/// Number of generations opened so far.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Encodings in which a whole catalog is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Uncompressed.
    Identity,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Complete content of a catalog. It stays readable while it is referenced, even after newer content replaced it and
/// its files were removed.
#[derive(Debug)]
pub struct Generation {
    /// Unique within this process.
    number: u64,
    path: PathBuf,
    manifest: Manifest,
    content: File,
    gzip: File,
    zstd: File,
    index: Index,
}

/// Returns the base of the name of a generation's folder: the image digest.
pub(super) fn generation_name(origin: &Origin) -> String {
    let digest = origin.resolved.rsplit_once('@').map_or("", |(_, digest)| digest);
    let mut base: String = digest
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '-' })
        .take(200)
        .collect();
    if base.is_empty() {
        base.push_str("content");
    }
    base
}

/// Returns the defect of a manifest whose digests are not those of its content and its folder.
fn misnamed(folder: &Path, manifest: &Manifest) -> Option<&'static str> {
    if manifest.files.get(CONTENT).map(|info| &info.sha256) != Some(&manifest.digest) {
        return Some("the manifest has two digests of the content");
    }
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    // Content that is stored again has a number behind a dot; a base has no dots.
    let base = name.split_once('.').map_or(name, |(base, _)| base);
    (base != generation_name(&manifest.origin)).then_some("the manifest has the digest of another image")
}

impl Generation {
    /// Opens the generation in a folder. Checks sizes, and the digests in the manifest; see [`Generation::verify`] for the content.
    pub(super) fn open(path: &Path) -> Result<Self, StorageError> {
        let manifest = Manifest::read(&path.join(MANIFEST))?;
        // Nothing digests the manifest itself, and clients rely on both digests.
        if let Some(what) = misnamed(path, &manifest) {
            let path = path.join(MANIFEST);
            return Err(StorageError::Damaged { path, what });
        }
        let open = |name: &str| {
            let path = path.join(name);
            let file = File::open(&path).map_err(StorageError::io("open", &path))?;
            let size = file.metadata().map_err(StorageError::io("read", &path))?.len();
            if size == manifest.size(name) {
                Ok(file)
            } else {
                Err(StorageError::Damaged {
                    path,
                    what: "its size differs from its manifest",
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

    /// Reads all open files and compares them with the manifest. Calls `progress` with the size of each read; false
    /// interrupts. Blocks on the disk.
    ///
    /// # Errors
    /// A file is damaged or unreadable, or [`StorageError::Interrupted`].
    pub fn verify(&self, progress: &dyn Fn(u64) -> bool) -> Result<(), StorageError> {
        let files = [
            (CONTENT, &self.content),
            (CONTENT_GZIP, &self.gzip),
            (CONTENT_ZSTD, &self.zstd),
            (INDEX, self.index.file()),
        ];
        for (name, file) in files {
            let path = self.path.join(name);
            if self.manifest.files.get(name) != Some(&files::digest_file(file, &path, progress)?) {
                return Err(StorageError::Damaged {
                    path,
                    what: "its digest differs from its manifest",
                });
            }
        }
        Ok(())
    }

    /// Returns the cache key for responses from this content. Content that is reopened has another key, since it may
    /// have been repaired.
    pub(crate) fn key(&self) -> String {
        format!("{}-{}", self.manifest.digest, self.number)
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the folder of the generation.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length of the whole content in an encoding, in bytes.
    pub fn size(&self, encoding: Encoding) -> u64 {
        self.manifest.size(match encoding {
            Encoding::Identity => CONTENT,
            Encoding::Gzip => CONTENT_GZIP,
            Encoding::Zstd => CONTENT_ZSTD,
        })
    }

    /// Returns the length of the index, in bytes.
    pub fn index_size(&self) -> u64 {
        self.manifest.size(INDEX)
    }

    /// Fills `bytes` from an offset of the content in an encoding. Blocks on the disk. Fails if the content ends before.
    pub fn read_at(&self, encoding: Encoding, bytes: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.read_with_mode(encoding, bytes, offset, ReadMode::Blocking)
    }

    /// Reads like [`Generation::read_at`], with the blocking behaviour of `mode`.
    pub(crate) fn read_with_mode(
        &self,
        encoding: Encoding,
        bytes: &mut [u8],
        offset: u64,
        mode: ReadMode,
    ) -> Result<(), StorageError> {
        let (file, name) = match encoding {
            Encoding::Identity => (&self.content, CONTENT),
            Encoding::Gzip => (&self.gzip, CONTENT_GZIP),
            Encoding::Zstd => (&self.zstd, CONTENT_ZSTD),
        };
        files::read_exact_at(file, bytes, offset, mode)
            .map_err(StorageError::io("read", self.path.join(name)))
    }

    /// Starts a search with a filter that is not empty; `None` if nothing can match. Blocks on the disk.
    pub fn select(&self, filter: &Filter) -> Result<Option<Selection>, StorageError> {
        self.index.select(filter, ReadMode::Blocking)
    }

    /// Starts a search like [`Generation::select`]; neither it nor later reads of the selection wait for the disk.
    pub fn select_cached(&self, filter: &Filter) -> Result<Option<Selection>, StorageError> {
        self.index.select(filter, ReadMode::CachedOnly)
    }

    /// Returns the next ranges of a search, `None` at its end. Blocks on the disk.
    pub fn next_ranges(&self, selection: &mut Selection) -> Result<Option<Vec<BlobRange>>, StorageError> {
        self.index.next(selection)
    }

    /// Returns the number of bytes that a search selects. Blocks on the disk.
    pub fn selected_length(&self, selection: &Selection) -> Result<u64, StorageError> {
        let (mut selection, mut length) = (selection.clone(), 0);
        while let Some(ranges) = self.next_ranges(&mut selection)? {
            length += ranges.iter().map(|range| range.length).sum::<u64>();
        }
        Ok(length)
    }

    /// Returns the ranges of the objects of a schema in file order: `limit` objects from `offset` on. Blocks on the
    /// disk.
    pub fn page(&self, schema: &str, offset: u64, limit: u64) -> Result<Vec<BlobRange>, StorageError> {
        self.index.page(schema, offset, limit)
    }

    /// Returns the first schemas by name, at most `most`, with their numbers of objects. Blocks on the disk.
    pub fn schemas(&self, most: usize) -> Result<Schemas, StorageError> {
        self.index.schemas(most)
    }
}
