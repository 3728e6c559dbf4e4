//! Writes a generation into a temporary folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufWriter, Read, Write},
    path::Path,
    thread,
};

use olm_catalog_files::walk;
use olm_runtime::parsing;

use super::{
    Limits, Manifest, Origin, StorageError,
    encodings::EncodingWriters,
    files,
    generation::{CONTENT, INDEX, MANIFEST},
    index::Builder,
};
use crate::disk::Output;

/// Reads the catalog below `source` and writes a synced generation into the existing, empty folder `target`.
/// `stored_at` returns the time since which content with a digest exists. `interrupted` is called before every file and
/// every read of a file.
pub(super) fn write(
    source: &Path,
    target: &Path,
    limits: &Limits,
    origin: Origin,
    stored_at: impl FnOnce(&str) -> i64,
    interrupted: &dyn Fn() -> bool,
) -> Result<Manifest, StorageError> {
    let mut index = Builder::new(target, limits.objects);
    let encodings = thread::scope(|scope| {
        let mut encodings = EncodingWriters::start(scope, target)?;
        let read = read(source, limits, &mut index, &mut encodings, interrupted);
        // A writer's error explains more than the read that stopped because of it.
        let written = encodings.finish();
        match (read, written) {
            (Err(error), _) | (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(encodings)) => Ok(encodings),
        }
    })?;
    let mut infos: BTreeMap<_, _> = encodings
        .into_iter()
        .map(|(name, info)| (name.to_owned(), info))
        .collect();
    let digest = infos
        .get(CONTENT)
        .map(|info| info.sha256.clone())
        .unwrap_or_default();
    let counts = index.counts();
    let index_path = target.join(INDEX);
    let mut index_file = files::create(&index_path)?;
    index.write(&mut index_file, &index_path)?;
    infos.insert(INDEX.to_owned(), files::finish_synced(index_file, &index_path)?);
    let manifest = Manifest::new(origin, counts, stored_at(&digest), digest, infos);
    let manifest_path = target.join(MANIFEST);
    let file = Output::create_new(&manifest_path).map_err(StorageError::io("create", &manifest_path))?;
    let mut file = BufWriter::new(file);
    file.write_all(&manifest.to_bytes())
        .and_then(|()| file.flush())
        .and_then(|()| file.get_ref().sync())
        .map_err(StorageError::io("write", &manifest_path))?;
    files::sync_folder(target)?;
    Ok(manifest)
}

/// Reader that fails once it is interrupted, also within a long file that has no object.
struct Interruptible<'a, R> {
    inner: R,
    interrupted: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Interruptible<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.interrupted)() {
            // Readers retry the error kind `Interrupted`.
            return Err(io::Error::other(StorageError::Interrupted));
        }
        self.inner.read(buffer)
    }
}

/// Reads all files of a catalog once, in order.
fn read(
    source: &Path,
    limits: &Limits,
    index: &mut Builder,
    encodings: &mut EncodingWriters<'_>,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), StorageError> {
    /// Number of objects between two turns of other parsers.
    const TURN: u64 = 256;
    let mut size = 0;
    for (path, name) in walk(source, &limits.tree)? {
        if interrupted() {
            return Err(StorageError::Interrupted);
        }
        let file = fs::File::open(&path).map_err(StorageError::io("open", &path))?;
        let length = file.metadata().map_err(StorageError::io("read", &path))?.len();
        let mut turn = parsing::acquire(length);
        let file = Interruptible {
            inner: file,
            interrupted,
        };
        for meta in olm_fbc::decode(file, &limits.per_file()) {
            let meta = meta.map_err(|source| {
                if interrupted() {
                    return StorageError::Interrupted;
                }
                StorageError::Decode {
                    file: name.clone(),
                    source,
                }
            })?;
            size += meta.blob.len() as u64;
            if size > limits.content {
                return Err(StorageError::TooLarge {
                    what: "bytes",
                    limit: limits.content,
                });
            }
            index.add(&meta)?;
            if !encodings.add(&meta.blob) {
                return Ok(());
            }
            if index.counts().metas.is_multiple_of(TURN) {
                // Yields to other parsers during a long file.
                drop(turn);
                turn = parsing::acquire(length);
            }
        }
    }
    Ok(())
}
