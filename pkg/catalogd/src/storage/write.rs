//! Writes a generation into a temporary folder.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Read, Write},
    path::Path,
    thread,
};

use olm_runtime::parsing;

use super::{
    Limits, Manifest, Origin, Source, StorageError,
    encodings::EncodingWriters,
    files,
    generation::{CONTENT, INDEX, MANIFEST},
    index::Builder,
    manifest::FileInfo,
};
use crate::disk::Output;

/// Reads the catalog of `source` and writes a synced generation into the existing, empty folder `target`.
/// `stored_at` returns the time since which content with a digest exists. `interrupted` is called before every file and
/// every read of a file.
pub(super) fn write(
    source: &mut dyn Source,
    target: &Path,
    limits: &Limits,
    origin: Origin,
    stored_at: impl FnOnce(&str) -> i64,
    interrupted: &dyn Fn() -> bool,
) -> Result<Manifest, StorageError> {
    let mut index = Builder::new(target, limits.objects);
    let (infos, counts) = thread::scope(|scope| {
        let mut encodings = EncodingWriters::start(scope, target)?;
        let read = read(source, limits, &mut index, &mut encodings, interrupted);
        let complete = encodings.close() && read.is_ok();
        let counts = index.counts();
        // The threads compress and sync their last chunks meanwhile.
        let written = complete.then(|| write_index(index, target)).transpose();
        let encoded = encodings.join();
        read?;
        // A writer's error explains more than the read that stopped because of it.
        let mut infos = encoded?;
        infos.extend(written?.map(|info| (INDEX, info)));
        Ok::<_, StorageError>((infos, counts))
    })?;
    let infos: BTreeMap<_, _> = infos
        .into_iter()
        .map(|(name, info)| (name.to_owned(), info))
        .collect();
    let digest = infos
        .get(CONTENT)
        .map(|info| info.sha256.clone())
        .unwrap_or_default();
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

/// Writes the synced index into the folder `target`.
fn write_index(index: Builder, target: &Path) -> Result<FileInfo, StorageError> {
    let path = target.join(INDEX);
    let mut file = files::create(&path)?;
    index.write(&mut file, &path)?;
    files::finish_synced(file, &path)
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
    source: &mut dyn Source,
    limits: &Limits,
    index: &mut Builder,
    encodings: &mut EncodingWriters<'_>,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), StorageError> {
    /// Number of objects between two turns of other parsers.
    const TURN: u64 = 256;
    let mut size = 0;
    source.each(&limits.tree, &mut |name, length, content| {
        if interrupted() {
            return Err(StorageError::Interrupted);
        }
        let mut turn = parsing::acquire(length);
        let content = Interruptible {
            inner: content,
            interrupted,
        };
        for meta in olm_fbc::decode(content, &limits.per_file()) {
            let meta = meta.map_err(|source| {
                if interrupted() {
                    return StorageError::Interrupted;
                }
                StorageError::Decode {
                    file: name.to_owned(),
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
                return Ok(false);
            }
            if index.counts().metas.is_multiple_of(TURN) {
                // Yields to other parsers during a long file.
                drop(turn);
                turn = parsing::acquire(length);
            }
        }
        Ok(true)
    })
}
