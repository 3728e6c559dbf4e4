//! Room for what is sent, used again and again, and bounded.
//!
//! A catalog is sent in thousands of pieces. Room that is given back to the allocator for each of them goes back to the
//! kernel, and is taken from it again page by page: that costs as much as encrypting what is sent.
//!
//! Clients that take no bytes hold the piece that they are sent. If many do, pieces become smaller, and answers are no
//! longer made whole before they are sent: memory does not grow with what slow clients ask for.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// Bytes read and sent at once. Less than what allocators never keep (128 KiB for those of glibc and musl).
pub(super) const PIECE: usize = 64 * 1024;
/// Size of a piece while room is scarce, in bytes.
const SMALL: usize = 8 * 1024;
/// Pieces kept while nobody needs them, what a few connections have on their way at once: two megabytes, at most four where
/// objects were larger.
const KEPT: usize = 32;
/// Bytes of pieces that are out at once before room is scarce: more than a few connections at full speed need.
const AMPLE: usize = 4 * 1024 * 1024;
/// Bytes of answers that were made whole from which room is scarce, answers kept for other clients included.
const AMPLE_WHOLE: usize = 12 * 1024 * 1024;

static ROOM: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static PIECES: AtomicUsize = AtomicUsize::new(0);
static WHOLE: AtomicUsize = AtomicUsize::new(0);

/// Returns the most bytes of an answer to make before it is sent: `usual`, or little while clients hold many answers.
pub(super) fn whole(usual: usize) -> usize {
    if WHOLE.load(Ordering::Relaxed) > AMPLE_WHOLE {
        usual.min(SMALL)
    } else {
        usual
    }
}

/// Bytes that count in a total until they are dropped.
#[derive(Debug)]
struct Counted {
    bytes: Vec<u8>,
    size: usize,
    total: &'static AtomicUsize,
}

impl Counted {
    fn new(bytes: Vec<u8>, total: &'static AtomicUsize) -> Self {
        let size = bytes.capacity();
        total.fetch_add(size, Ordering::Relaxed);
        Self { bytes, size, total }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// An answer, or its beginning, that was made before it is sent.
pub(super) fn made(bytes: Vec<u8>) -> Bytes {
    Bytes::from_owner(Counted::new(bytes, &WHOLE))
}

/// Bytes on their way to a client; their room is used again when they were sent.
#[derive(Debug)]
pub(super) struct Piece {
    inner: Counted,
    room: usize,
}

impl Piece {
    /// An empty one with room for [`PIECE`] bytes, or for few while room is scarce.
    pub(super) fn new() -> Self {
        let scarce = PIECES.load(Ordering::Relaxed) + PIECE > AMPLE;
        let room = if scarce { SMALL } else { PIECE };
        let kept = if scarce { None } else { ROOM.lock().pop() };
        let bytes = kept.unwrap_or_else(|| Vec::with_capacity(room));
        Self {
            inner: Counted::new(bytes, &PIECES),
            room,
        }
    }

    /// Returns the number of bytes to put into the piece.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Where its bytes are put.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.inner.bytes
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.inner.bytes.is_empty()
    }

    /// What is sent.
    pub(super) fn send(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.inner.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.inner.bytes);
        // One object can be larger than a piece; its room is not kept, nor is that of small pieces.
        if bytes.capacity() > 2 * PIECE || bytes.capacity() < PIECE {
            return;
        }
        bytes.clear();
        let mut room = ROOM.lock();
        if room.len() < KEPT {
            room.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of all tests count together.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn pieces_are_small_while_many_are_out() {
        let _alone = ALONE.lock();
        let pieces: Vec<Piece> = (0..1000).map(|_| Piece::new()).collect();
        let out: usize = pieces.iter().map(|piece| piece.inner.bytes.capacity()).sum();
        assert!(out <= AMPLE + 2 * PIECE + 1000 * SMALL, "{out}");
        assert_eq!(pieces.last().map(Piece::room), Some(SMALL));
        drop(pieces);
        assert_eq!(Piece::new().room(), PIECE);
    }

    #[test]
    fn answers_are_made_whole_unless_clients_hold_many() {
        assert_eq!(whole(PIECE), PIECE);
        let held: Vec<Bytes> = (0..16).map(|_| made(vec![0; 1024 * 1024])).collect();
        assert_eq!(whole(PIECE), SMALL);
        assert_eq!(held.iter().map(Bytes::len).sum::<usize>(), 16 * 1024 * 1024);
        drop(held);
        assert_eq!(whole(PIECE), PIECE);
    }

    #[test]
    fn room_is_used_again_and_is_bounded() {
        let _alone = ALONE.lock();
        let pieces: Vec<Bytes> = (0..2 * KEPT)
            .map(|number| {
                let mut piece = Piece::new();
                assert!(piece.is_empty(), "nothing of what was sent before is in it");
                piece.bytes().resize(PIECE, u8::try_from(number).unwrap());
                piece.send()
            })
            .collect();
        for (number, piece) in pieces.iter().enumerate() {
            assert!(piece.iter().all(|byte| usize::from(*byte) == number));
        }
        drop(pieces);
        assert!(ROOM.lock().len() <= KEPT);
        let mut large = Piece::new();
        large.bytes().resize(10 * PIECE, 1);
        drop(large);
        assert!(
            ROOM.lock()
                .iter()
                .all(|room| room.capacity() <= 2 * PIECE && room.is_empty())
        );
    }
}
