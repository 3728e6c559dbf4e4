//! Decompression on a thread of its own, ahead of the entries that are written.

use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

/// Size of a piece in bytes.
const PIECE: usize = 64 * 1024;
/// Maximum number of pieces that are ready.
const QUEUE: usize = 4;

/// Reader of a stream that a thread reads ahead. Dropping it ends the thread.
pub(super) struct Ahead {
    /// `None` once the stream has ended.
    messages: Option<Receiver<Message>>,
    /// Pieces that were read, whose memory the thread uses again.
    used: SyncSender<Vec<u8>>,
    piece: Vec<u8>,
    /// Number of bytes of the piece that were read.
    at: usize,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Piece(Vec<u8>),
    Failed(io::Error),
    End,
}

impl Ahead {
    /// Starts to read a stream.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(stream: impl Read + Send + 'static) -> io::Result<Self> {
        let (send, messages) = sync_channel(QUEUE);
        let (used, free) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("decompress".to_owned())
            .spawn(move || read_all(stream, &send, &free))?;
        Ok(Self {
            messages: Some(messages),
            used,
            piece: Vec::new(),
            at: 0,
            thread: Some(thread),
        })
    }

    /// Waits for the next piece; returns false at the end of the stream.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(messages) = &self.messages else {
            return Ok(false);
        };
        match messages.recv() {
            Ok(Message::Piece(piece)) => {
                let used = std::mem::replace(&mut self.piece, piece);
                self.at = 0;
                // The thread may have ended.
                let _ = self.used.try_send(used);
                Ok(true)
            }
            Ok(Message::End) => {
                self.messages = None;
                Ok(false)
            }
            Ok(Message::Failed(error)) => Err(error),
            // Without its end, a stream may have lost bytes.
            Err(_) => Err(io::Error::other("the decompression ended abnormally")),
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.piece.len() {
            if buffer.is_empty() || !self.advance()? {
                return Ok(0);
            }
        }
        let rest = self.piece.get(self.at..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        let (to, from) = (buffer.get_mut(..count), rest.get(..count));
        to.unwrap_or_default().copy_from_slice(from.unwrap_or_default());
        self.at += count;
        Ok(count)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // The thread ends when it cannot send.
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported as an error of the stream.
            let _ = thread.join();
        }
    }
}

/// Sends a stream in pieces, and then its end or its error, until nobody receives them.
fn read_all(mut stream: impl Read, send: &SyncSender<Message>, free: &Receiver<Vec<u8>>) {
    loop {
        let mut piece = free.try_recv().unwrap_or_default();
        piece.resize(PIECE, 0);
        let (length, last) = fill(&mut stream, &mut piece);
        piece.truncate(length);
        if send.send(Message::Piece(piece)).is_err() {
            return;
        }
        if let Some(last) = last {
            let _ = send.send(last);
            return;
        }
    }
}

/// Fills a buffer; returns the number of bytes, and the last message if the stream has no more.
fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> (usize, Option<Message>) {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => return (length, Some(Message::End)),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (length, Some(Message::Failed(error))),
        }
    }
    (length, None)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use super::*;

    /// Bytes in reads of odd lengths, and then what `last` gives.
    struct Stream {
        left: usize,
        last: fn() -> io::Result<usize>,
        read: Arc<AtomicUsize>,
        dropped: Arc<AtomicBool>,
    }

    impl Stream {
        fn new(length: usize, last: fn() -> io::Result<usize>) -> Self {
            Self {
                left: length,
                last,
                read: Arc::default(),
                dropped: Arc::default(),
            }
        }
    }

    impl Read for Stream {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.left.min(buffer.len()).min(9973);
            if count == 0 {
                return (self.last)();
            }
            for (at, byte) in buffer[..count].iter_mut().enumerate() {
                *byte = byte_of(self.left - at);
            }
            self.left -= count;
            self.read.fetch_add(count, Ordering::Relaxed);
            Ok(count)
        }
    }

    impl Drop for Stream {
        fn drop(&mut self) {
            self.dropped.store(true, Ordering::Relaxed);
        }
    }

    fn byte_of(left: usize) -> u8 {
        u8::try_from(left % 251).unwrap()
    }

    /// Lengths around the borders of pieces.
    const LENGTHS: [usize; 6] = [0, 1, PIECE - 1, PIECE, PIECE + 1, 20 * PIECE + 7];

    #[test]
    fn all_bytes_come_in_order() {
        for length in LENGTHS {
            let mut ahead = Ahead::start(Stream::new(length, || Ok(0))).unwrap();
            let mut bytes = Vec::new();
            ahead.read_to_end(&mut bytes).unwrap();
            let wanted: Vec<u8> = (1..=length).rev().map(byte_of).collect();
            assert!(bytes == wanted, "{length}");
            assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 0, "the end stays the end");
        }
    }

    #[test]
    fn an_error_comes_after_the_bytes_before_it() {
        for length in LENGTHS {
            let mut ahead =
                Ahead::start(Stream::new(length, || Err(io::ErrorKind::InvalidData.into()))).unwrap();
            let mut bytes = Vec::new();
            let error = ahead.read_to_end(&mut bytes).unwrap_err();
            assert_eq!((error.kind(), bytes.len()), (io::ErrorKind::InvalidData, length));
            ahead.read(&mut [0]).expect_err("no end after an error");
        }
    }

    #[test]
    fn a_panic_is_an_error_and_no_end() {
        let mut ahead = Ahead::start(Stream::new(100, || panic!("as planned"))).unwrap();
        let error = ahead.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "the decompression ended abnormally");
    }

    #[test]
    fn a_reader_that_goes_ends_the_thread_within_a_few_pieces() {
        let endless = Stream::new(usize::MAX, || Ok(0));
        let (read, dropped) = (endless.read.clone(), endless.dropped.clone());
        let mut ahead = Ahead::start(endless).unwrap();
        ahead.read_exact(&mut [0; 10]).unwrap();
        drop(ahead);
        assert!(dropped.load(Ordering::Relaxed), "the thread has ended");
        // The piece that was read, those in the queue, and the one that could not be sent.
        assert!(read.load(Ordering::Relaxed) <= (QUEUE + 2) * PIECE);
    }
}
