//! Writers of a catalog's content in its encodings. Each runs on its own thread and receives the same chunks.
//!
//! Compression is slower than reading a catalog, so reading does not wait for it. The queues are short: memory is
//! bounded by a few chunks, whatever the size of the catalog.

use std::{
    io::{BufWriter, Write},
    panic::resume_unwind,
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
    early_sync::EarlySync,
    files::{self, DigestWriter},
    generation::{CONTENT, CONTENT_GZIP, CONTENT_ZSTD},
    manifest::FileInfo,
};
use crate::disk;

/// Size of a chunk in bytes. Smaller than the allocations that allocators return to the kernel each time (128 KiB).
const CHUNK: usize = files::BUFFER;
/// Maximum number of chunks queued for a thread.
const QUEUE: usize = 16;
/// gzip level: with this library it compresses like level 6 of others, twice as fast on real catalogs.
const GZIP_LEVEL: Compression = Compression::new(7);
/// zstd level: as fast as gzip's fastest, with output smaller than gzip's best.
const ZSTD_LEVEL: i32 = 3;

type Encoded = DigestWriter<BufWriter<disk::Output>>;
type Chunk = Arc<Vec<u8>>;

/// Writers of `catalog.jsonl` and its compressed encodings.
pub(super) struct EncodingWriters<'scope> {
    chunk: Vec<u8>,
    queues: Vec<SyncSender<Chunk>>,
    threads: Vec<WriterThread<'scope>>,
    /// A thread ended before it had all chunks.
    failed: bool,
}

type WriterThread<'scope> = (
    &'static str,
    ScopedJoinHandle<'scope, Result<FileInfo, StorageError>>,
);

impl<'scope> EncodingWriters<'scope> {
    /// Starts one thread per encoding, writing into the folder `target`.
    pub(super) fn start(scope: &'scope Scope<'scope, '_>, target: &Path) -> Result<Self, StorageError> {
        let mut encodings = Self {
            chunk: Vec::with_capacity(CHUNK),
            queues: Vec::new(),
            threads: Vec::new(),
            failed: false,
        };
        encodings.spawn(scope, CONTENT, target, plain)?;
        encodings.spawn(scope, CONTENT_GZIP, target, gzip)?;
        encodings.spawn(scope, CONTENT_ZSTD, target, zstd)?;
        Ok(encodings)
    }

    fn spawn(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        name: &'static str,
        target: &Path,
        write: fn(Receiver<Chunk>, Encoded, PathBuf) -> Result<FileInfo, StorageError>,
    ) -> Result<(), StorageError> {
        let path = target.join(name);
        let output = files::create(&path)?;
        let (queue, chunks) = sync_channel(QUEUE);
        let started = {
            let path = path.clone();
            thread::Builder::new()
                .name(name.to_owned())
                .spawn_scoped(scope, move || write(chunks, output, path))
        };
        self.threads.push((
            name,
            started.map_err(StorageError::io("start a thread for", path))?,
        ));
        self.queues.push(queue);
        Ok(())
    }

    /// Adds bytes to the content. Returns false if a thread failed; [`EncodingWriters::join`] returns its error.
    pub(super) fn add(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let free = CHUNK.saturating_sub(self.chunk.len()).min(bytes.len());
            let (next, rest) = bytes.split_at(free);
            self.chunk.extend_from_slice(next);
            bytes = rest;
            if self.chunk.len() >= CHUNK && !self.flush() {
                return false;
            }
        }
        true
    }

    fn flush(&mut self) -> bool {
        if self.chunk.is_empty() {
            return true;
        }
        let chunk = Arc::new(std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK)));
        let sent = self.queues.iter().all(|queue| queue.send(chunk.clone()).is_ok());
        self.failed |= !sent;
        sent
    }

    /// Ends the content; the threads go on until all files are on disk. Returns false if a thread failed;
    /// [`EncodingWriters::join`] returns its error.
    pub(super) fn close(&mut self) -> bool {
        self.flush();
        self.chunk = Vec::new();
        self.queues.clear();
        !self.failed
    }

    /// Waits until all files are on disk; returns name, size and digest of each.
    pub(super) fn join(mut self) -> Result<Vec<(&'static str, FileInfo)>, StorageError> {
        self.close();
        let mut infos = Vec::new();
        for (name, thread) in self.threads {
            // A panic must reach the guard that reports it.
            let written = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            infos.push((name, written?));
        }
        Ok(infos)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the common signature of all writers"
)]
fn plain(chunks: Receiver<Chunk>, mut file: Encoded, path: PathBuf) -> Result<FileInfo, StorageError> {
    thread::scope(|scope| {
        // A sync on this thread would fill the queue, and the catalog would not be read meanwhile.
        let mut early = EarlySync::new(scope);
        for chunk in &chunks {
            file.write_all(&chunk).map_err(StorageError::io("write", &path))?;
            early.written(chunk.len(), file.get_ref().get_ref());
        }
        early.finish().map_err(StorageError::io("sync", &path))
    })?;
    files::finish_synced(file, &path)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the common signature of all writers"
)]
fn gzip(chunks: Receiver<Chunk>, file: Encoded, path: PathBuf) -> Result<FileInfo, StorageError> {
    let mut file = GzEncoder::new(file, GZIP_LEVEL);
    for chunk in &chunks {
        file.write_all(&chunk).map_err(StorageError::io("write", &path))?;
    }
    let file = file.finish().map_err(StorageError::io("write", &path))?;
    files::finish_synced(file, &path)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the common signature of all writers"
)]
fn zstd(chunks: Receiver<Chunk>, file: Encoded, path: PathBuf) -> Result<FileInfo, StorageError> {
    let mut file = zstd::Encoder::new(file, ZSTD_LEVEL).map_err(StorageError::io("compress", &path))?;
    for chunk in &chunks {
        file.write_all(&chunk).map_err(StorageError::io("write", &path))?;
    }
    let file = file.finish().map_err(StorageError::io("write", &path))?;
    files::finish_synced(file, &path)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_panic_of_a_writer_is_not_an_interruption() {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let writers = EncodingWriters {
                    chunk: Vec::new(),
                    queues: Vec::new(),
                    threads: vec![(CONTENT, scope.spawn(|| panic!("out of cheese")))],
                    failed: false,
                };
                writers.join().is_ok()
            })
        }));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"out of cheese"));
    }
}
