//! A source whose last bytes can be read once more.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes that are read at a time.
const CHUNK: usize = 64 * 1024;

/// A buffered reader that takes bytes back.
#[derive(Debug)]
pub(crate) struct Source<R> {
    /// Bytes that were taken back, from `at` on.
    again: Vec<u8>,
    at: usize,
    reader: BufReader<R>,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            again: Vec::new(),
            at: 0,
            reader: BufReader::with_capacity(CHUNK, reader),
        }
    }

    /// Takes back the bytes that were read last.
    pub(crate) fn unread(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(self.again.get(self.at..).unwrap_or_default());
        self.again = bytes;
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
        match self.again.get(self.at..) {
            Some(rest) if !rest.is_empty() => Ok(rest),
            _ => self.reader.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        if self.at < self.again.len() {
            self.at += count;
            if self.at >= self.again.len() {
                self.again = Vec::new();
                self.at = 0;
            }
        } else {
            self.reader.consume(count);
        }
    }
}
