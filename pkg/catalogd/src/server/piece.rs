//! Room for what is sent, used again and again.
//!
//! A catalog is sent in thousands of pieces. Room that is given back to the allocator for each of them goes back to the
//! kernel, and is taken from it again page by page: that costs as much as encrypting what is sent.

use bytes::Bytes;
use parking_lot::Mutex;

/// Bytes read and sent at once. Less than what allocators never keep (128 KiB for those of glibc and musl).
pub(super) const PIECE: usize = 64 * 1024;
/// Pieces kept while nobody needs them, what a few connections have on their way at once: two megabytes, at most four where
/// objects were larger.
const KEPT: usize = 32;

static ROOM: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Bytes on their way to a client; their room is used again when they were sent.
#[derive(Debug)]
pub(super) struct Piece(Vec<u8>);

impl Piece {
    /// An empty one with room for [`PIECE`] bytes.
    pub(super) fn new() -> Self {
        let room = ROOM.lock().pop();
        Self(room.unwrap_or_else(|| Vec::with_capacity(PIECE)))
    }

    /// Where its bytes are put.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is sent.
    pub(super) fn send(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        // One object can be larger than a piece; its room is not kept.
        if bytes.capacity() > 2 * PIECE {
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

    #[test]
    fn room_is_used_again_and_is_bounded() {
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
