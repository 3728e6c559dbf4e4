//! Pool of response buffers, bounded in size.
//!
//! A catalog is sent in thousands of chunks. Freeing the buffer of each returns it to the kernel, and allocating the
//! next one faults it in page by page. That costs as much as encrypting the response.
//!
//! Slow clients hold the chunks they are being sent. If many do, chunks become smaller, and responses are no longer
//! read whole before they are sent: the request of a further slow client takes a few kilobytes. A projected object is never
//! divided; [`LargeObjects`](super::large::LargeObjects) limits those that are larger than a chunk.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

/// Size of a chunk in bytes. Smaller than the allocations that allocators never pool (128 KiB for glibc and musl).
pub(super) const CHUNK: usize = 64 * 1024;
/// Size of a chunk under memory pressure, in bytes.
const SMALL_CHUNK: usize = 8 * 1024;
/// Maximum number of pooled buffers, as many as a few connections use at once: two megabytes, at most four if objects
/// were larger.
const MAX_POOLED: usize = 32;
/// Total size of chunks in use above which memory is under pressure, in bytes: more than a few connections need at full
/// speed.
const MAX_CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// Total size of buffered responses above which memory is under pressure, in bytes, including those cached for other
/// clients.
const MAX_BUFFERED_BYTES: usize = 12 * 1024 * 1024;

static POOL: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static CHUNK_BYTES: AtomicUsize = AtomicUsize::new(0);
static BUFFERED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of bytes to buffer before a response is sent: `usual`, or few while clients hold many responses.
pub(super) fn buffer_limit(usual: usize) -> usize {
    if BUFFERED_BYTES.load(Ordering::Relaxed) > MAX_BUFFERED_BYTES {
        usual.min(SMALL_CHUNK)
    } else {
        usual
    }
}

/// Bytes that count towards a total until they are dropped.
#[derive(Debug)]
struct CountedBytes {
    bytes: Vec<u8>,
    size: usize,
    total: &'static AtomicUsize,
    /// Part of the memory of large objects.
    memory: Option<OwnedSemaphorePermit>,
}

impl CountedBytes {
    fn new(bytes: Vec<u8>, total: &'static AtomicUsize) -> Self {
        let size = bytes.capacity();
        total.fetch_add(size, Ordering::Relaxed);
        Self {
            bytes,
            size,
            total,
            memory: None,
        }
    }

    /// Counts the bytes again, after they grew, and holds their part of the memory of large objects.
    fn hold(&mut self, memory: Option<OwnedSemaphorePermit>) {
        if memory.is_some() {
            // Appending doubled the capacity.
            self.bytes.shrink_to_fit();
        }
        self.memory = memory;
        let size = self.bytes.capacity();
        self.total.fetch_add(size, Ordering::Relaxed);
        self.total
            .fetch_sub(std::mem::replace(&mut self.size, size), Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.total.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// Returns a response, or its beginning, that was buffered before it is sent.
pub(super) fn buffered(bytes: Vec<u8>) -> Bytes {
    buffered_with(bytes, None)
}

/// Returns a buffered response with its part of the memory of large objects.
pub(super) fn buffered_with(bytes: Vec<u8>, memory: Option<OwnedSemaphorePermit>) -> Bytes {
    let mut counted = CountedBytes::new(bytes, &BUFFERED_BYTES);
    counted.hold(memory);
    Bytes::from_owner(counted)
}

/// Part of a chunk's buffer that is sent.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// The whole buffer, which was emptied and appended to.
    All,
    /// The first bytes, which were overwritten. The others are of an earlier response.
    First(usize),
}

/// Bytes being sent to a client. The buffer returns to the pool when they were sent.
#[derive(Debug)]
pub(super) struct Chunk {
    inner: CountedBytes,
    /// Number of bytes to put into the chunk.
    capacity: usize,
    sent: Sent,
}

impl Chunk {
    /// Returns an empty chunk with capacity for [`CHUNK`] bytes, or for few under memory pressure.
    pub(super) fn new() -> Self {
        let pressure = CHUNK_BYTES.load(Ordering::Relaxed) + CHUNK > MAX_CHUNK_BYTES;
        let capacity = if pressure { SMALL_CHUNK } else { CHUNK };
        let pooled = if pressure { None } else { POOL.lock().pop() };
        let bytes = pooled.unwrap_or_else(|| Vec::with_capacity(capacity));
        Self {
            inner: CountedBytes::new(bytes, &CHUNK_BYTES),
            capacity,
            sent: Sent::First(0),
        }
    }

    /// Returns the number of bytes to put into the chunk.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Empties the buffer and returns it. The chunk is what the caller appends.
    pub(super) fn append(&mut self) -> &mut Vec<u8> {
        self.sent = Sent::All;
        self.inner.bytes.clear();
        &mut self.inner.bytes
    }

    /// Returns the buffer at full capacity, to overwrite from the start on. The chunk is empty until
    /// [`Chunk::overwritten`] says how many bytes were. The buffer may hold what was sent before: the buffers of the pool are not
    /// zeroed each time, which takes a fiftieth of the time of a response.
    pub(super) fn overwrite(&mut self) -> &mut [u8] {
        self.sent = Sent::First(0);
        let bytes = &mut self.inner.bytes;
        if bytes.len() < self.capacity {
            bytes.resize(self.capacity, 0);
        }
        bytes.get_mut(..self.capacity).unwrap_or_default()
    }

    /// Makes the chunk the first bytes of the buffer, which were overwritten.
    pub(super) fn overwritten(&mut self, count: usize) {
        self.sent = Sent::First(count);
    }

    /// Returns the number of bytes to send.
    pub(super) fn len(&self) -> usize {
        self.as_ref().len()
    }

    /// Reports whether the chunk is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.as_ref().is_empty()
    }

    /// Converts the chunk into bytes to send, which hold their part of the memory of large objects.
    pub(super) fn send(mut self, memory: Option<OwnedSemaphorePermit>) -> Bytes {
        self.inner.hold(memory);
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        let bytes = &self.inner.bytes;
        match self.sent {
            Sent::All => bytes,
            Sent::First(count) => bytes.get(..count).unwrap_or(bytes),
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.inner.bytes);
        // A large object can exceed the chunk size. Neither such buffers nor those of small chunks are pooled.
        if bytes.capacity() > 2 * CHUNK || bytes.capacity() < CHUNK {
            return;
        }
        let mut pool = POOL.lock();
        if pool.len() < MAX_POOLED {
            pool.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serializes the tests: the totals are global.
    static SERIAL: Mutex<()> = Mutex::new(());

    #[test]
    fn chunks_are_small_while_many_are_out() {
        let _serial = SERIAL.lock();
        let chunks: Vec<Chunk> = (0..1000).map(|_| Chunk::new()).collect();
        let out: usize = chunks.iter().map(|chunk| chunk.inner.bytes.capacity()).sum();
        assert!(out <= MAX_CHUNK_BYTES + 2 * CHUNK + 1000 * SMALL_CHUNK, "{out}");
        assert_eq!(chunks.last().map(Chunk::capacity), Some(SMALL_CHUNK));
        drop(chunks);
        assert_eq!(Chunk::new().capacity(), CHUNK);
    }

    #[test]
    fn answers_are_made_whole_unless_clients_hold_many() {
        assert_eq!(buffer_limit(CHUNK), CHUNK);
        let held: Vec<Bytes> = (0..16).map(|_| buffered(vec![0; 1024 * 1024])).collect();
        assert_eq!(buffer_limit(CHUNK), SMALL_CHUNK);
        assert_eq!(held.iter().map(Bytes::len).sum::<usize>(), 16 * 1024 * 1024);
        drop(held);
        assert_eq!(buffer_limit(CHUNK), CHUNK);
    }

    #[test]
    fn room_is_used_again_and_is_bounded() {
        let _serial = SERIAL.lock();
        let chunks: Vec<Bytes> = (0..2 * MAX_POOLED)
            .map(|number| {
                let mut chunk = Chunk::new();
                assert!(chunk.is_empty(), "nothing of what was sent before is in it");
                chunk.append().resize(CHUNK, u8::try_from(number).unwrap());
                chunk.send(None)
            })
            .collect();
        for (number, chunk) in chunks.iter().enumerate() {
            assert!(chunk.iter().all(|byte| usize::from(*byte) == number));
        }
        drop(chunks);
        assert!(POOL.lock().len() <= MAX_POOLED);
        let mut large = Chunk::new();
        large.append().resize(10 * CHUNK, 1);
        large.inner.hold(None);
        assert!(large.inner.size >= 10 * CHUNK, "growth counts");
        drop(large);
        assert!(POOL.lock().iter().all(|buffer| buffer.capacity() <= 2 * CHUNK));
    }

    #[test]
    fn only_what_was_overwritten_is_sent() {
        let _serial = SERIAL.lock();
        let mut secret = Chunk::new();
        secret.overwrite().fill(7);
        secret.overwritten(CHUNK);
        assert_eq!(secret.send(None).len(), CHUNK);
        // The same buffer.
        let mut chunk = Chunk::new();
        assert!(chunk.is_empty());
        chunk.overwrite()[..3].fill(1);
        assert!(chunk.is_empty(), "until the number of bytes is known");
        chunk.overwritten(3);
        assert_eq!(chunk.as_ref(), [1; 3]);
        chunk.append().extend([2; 2]);
        assert_eq!(chunk.send(None).as_ref(), [2; 2]);
    }
}
