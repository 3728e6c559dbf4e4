//! Source of a stream that accepts bytes back.

use std::io::{self, BufRead, BufReader, Read};

/// Size of a read, in bytes.
const CHUNK: usize = 64 * 1024;

/// Buffered reader that accepts bytes back.
#[derive(Debug)]
pub(crate) struct Source<R> {
    /// Bytes to read again, from `at` on.
    unread: Vec<u8>,
    at: usize,
    reader: BufReader<R>,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            unread: Vec::new(),
            at: 0,
            reader: BufReader::with_capacity(CHUNK, reader),
        }
    }

    /// Returns the bytes that were read last to the source.
    pub(crate) fn unread(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(self.unread.get(self.at..).unwrap_or_default());
        self.unread = bytes;
        self.at = 0;
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.unread.get(self.at..) {
            Some(rest) if !rest.is_empty() => Ok(rest),
            _ => self.reader.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        if self.at < self.unread.len() {
            self.at += count;
            if self.at >= self.unread.len() {
                self.unread = Vec::new();
                self.at = 0;
            }
        } else {
            self.reader.consume(count);
        }
    }
}
