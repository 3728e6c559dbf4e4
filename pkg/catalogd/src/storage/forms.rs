//! The forms of a catalog's content, written side by side: each on a thread of its own, from the same pieces.
//!
//! Compressing takes longer than reading a catalog, so it does not wait for it. The queues are short: what is
//! held is a few pieces, however large the catalog.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, Scope, ScopedJoinHandle},
};

use flate2::{Compression, write::GzEncoder};

use super::{
    StorageError,
    files::{self, Digesting},
    generation::{CONTENT, CONTENT_GZIP, CONTENT_ZSTD},
    manifest::FileInfo,
};

/// Bytes that are handed over at once. Less than what allocators fetch from the kernel anew each time (128 KiB).
const PIECE: usize = 64 * 1024;
/// Pieces that wait for a thread.
const QUEUE: usize = 16;
/// gzip's level: with the library used, what others reach with 6, twice as fast on real catalogs.
const GZIP_LEVEL: Compression = Compression::new(7);
/// zstd's level: as fast as gzip's fastest, smaller than its best.
const ZSTD_LEVEL: i32 = 3;

type Output = Digesting<BufWriter<File>>;
type Piece = Arc<Vec<u8>>;

/// Writes `catalog.jsonl` and its compressed forms.
pub(super) struct Forms<'scope> {
    piece: Vec<u8>,
    queues: Vec<SyncSender<Piece>>,
    threads: Vec<Writing<'scope>>,
}

type Writing<'scope> = (
    &'static str,
    ScopedJoinHandle<'scope, Result<FileInfo, StorageError>>,
);

impl<'scope> Forms<'scope> {
    /// Starts to write into the folder `target`.
    pub(super) fn start(scope: &'scope Scope<'scope, '_>, target: &Path) -> Result<Self, StorageError> {
        let mut forms = Self {
            piece: Vec::with_capacity(PIECE),
            queues: Vec::new(),
            threads: Vec::new(),
        };
        forms.spawn(scope, CONTENT, target, plain)?;
        forms.spawn(scope, CONTENT_GZIP, target, gzip)?;
        forms.spawn(scope, CONTENT_ZSTD, target, zstd)?;
        Ok(forms)
    }

    fn spawn(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        name: &'static str,
        target: &Path,
        write: fn(Receiver<Piece>, Output, PathBuf) -> Result<FileInfo, StorageError>,
    ) -> Result<(), StorageError> {
        let path = target.join(name);
        let output = files::create(&path)?;
        let (queue, pieces) = sync_channel(QUEUE);
        let started = {
            let path = path.clone();
            thread::Builder::new()
                .name(name.to_owned())
                .spawn_scoped(scope, move || write(pieces, output, path))
        };
        self.threads.push((
            name,
            started.map_err(StorageError::io("start a thread for", path))?,
        ));
        self.queues.push(queue);
        Ok(())
    }

    /// Adds bytes to the content. When a thread cannot write, [`Forms::finish`] says why; false means that going
    /// on is of no use.
    pub(super) fn add(&mut self, bytes: &[u8]) -> bool {
        self.piece.extend_from_slice(bytes);
        self.piece.len() < PIECE || self.flush()
    }

    fn flush(&mut self) -> bool {
        if self.piece.is_empty() {
            return true;
        }
        let piece = Arc::new(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE)));
        self.queues.iter().all(|queue| queue.send(piece.clone()).is_ok())
    }

    /// Waits until everything is on disk; returns name, size and digest of each file.
    pub(super) fn finish(mut self) -> Result<Vec<(&'static str, FileInfo)>, StorageError> {
        self.flush();
        self.queues.clear();
        let mut infos = Vec::new();
        for (name, thread) in self.threads {
            let written = thread.join().unwrap_or(Err(StorageError::Interrupted));
            infos.push((name, written?));
        }
        Ok(infos)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a form")]
fn plain(pieces: Receiver<Piece>, mut file: Output, path: PathBuf) -> Result<FileInfo, StorageError> {
    for piece in &pieces {
        file.write_all(&piece).map_err(StorageError::io("write", &path))?;
    }
    files::seal(file, &path)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a form")]
fn gzip(pieces: Receiver<Piece>, file: Output, path: PathBuf) -> Result<FileInfo, StorageError> {
    let mut file = GzEncoder::new(file, GZIP_LEVEL);
    for piece in &pieces {
        file.write_all(&piece).map_err(StorageError::io("write", &path))?;
    }
    let file = file.finish().map_err(StorageError::io("write", &path))?;
    files::seal(file, &path)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of a form")]
fn zstd(pieces: Receiver<Piece>, file: Output, path: PathBuf) -> Result<FileInfo, StorageError> {
    let mut file = zstd::Encoder::new(file, ZSTD_LEVEL).map_err(StorageError::io("compress", &path))?;
    for piece in &pieces {
        file.write_all(&piece).map_err(StorageError::io("write", &path))?;
    }
    let file = file.finish().map_err(StorageError::io("write", &path))?;
    files::seal(file, &path)
}
