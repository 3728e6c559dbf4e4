//! Sequential readers of stored content, with bounded chunks. They block on the disk, except for selections that do not
//! wait.

use std::{collections::VecDeque, io, sync::Arc};

use tokio::sync::OwnedSemaphorePermit;

use super::{chunk::CHUNK, jobs::Abandoned, large::Reservation, project::Projection};
use crate::storage::{BlobRange, Encoding, Generation, ReadMode, Selection, StorageError};

/// Failure while a response is produced.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("stored content cannot be read")]
    Storage(#[from] StorageError),
    #[error("a stored object is not JSON")]
    Object(#[source] serde_json::Error),
    #[error("an answer cannot be compressed")]
    Compress(#[source] io::Error),
    #[error("the client no longer waits")]
    Abandoned,
    /// The response goes on when `size` bytes of the memory of large objects are free.
    #[error("too many large objects are on their way to clients")]
    TooManyLarge { size: usize },
}

/// Next bytes of a reader.
enum Piece {
    /// Number of bytes that follow each other.
    Bytes(usize),
    /// No bytes, or none that can be found without waiting; `more` says which.
    None { more: bool },
}

/// Reader of consecutive ranges of content.
pub(super) struct ContentReader {
    generation: Arc<Generation>,
    encoding: Encoding,
    ranges: VecDeque<BlobRange>,
    selection: Option<Selection>,
    mode: ReadMode,
    /// Ranges that were read last, for a reader that goes back.
    last: Option<VecDeque<BlobRange>>,
}

impl ContentReader {
    /// Reads `length` bytes of an encoding from `start` on.
    pub(super) fn range(generation: Arc<Generation>, encoding: Encoding, start: u64, length: u64) -> Self {
        let ranges = VecDeque::from([BlobRange {
            offset: start,
            length,
        }]);
        Self {
            generation,
            encoding,
            ranges,
            selection: None,
            mode: ReadMode::Blocking,
            last: None,
        }
    }

    /// Reads the whole uncompressed content.
    pub(super) fn whole(generation: Arc<Generation>) -> Self {
        let size = generation.size(Encoding::Identity);
        Self::range(generation, Encoding::Identity, 0, size)
    }

    /// Reads the objects that a search selects.
    pub(super) fn selected(generation: Arc<Generation>, selection: Selection) -> Self {
        Self {
            generation,
            encoding: Encoding::Identity,
            ranges: VecDeque::new(),
            mode: selection.mode(),
            selection: Some(selection),
            last: None,
        }
    }

    /// Appends up to `capacity` bytes, fewer only at the end; returns whether there may be more.
    pub(super) fn read(&mut self, out: &mut Vec<u8>, capacity: usize) -> Result<bool, StorageError> {
        self.read_with_mode(out, capacity, self.mode)
    }

    /// Reads like [`ContentReader::read`], with the blocking behaviour of `mode`.
    fn read_with_mode(
        &mut self,
        out: &mut Vec<u8>,
        mut capacity: usize,
        mode: ReadMode,
    ) -> Result<bool, StorageError> {
        while capacity > 0 {
            let take = match self.next_piece(capacity, mode)? {
                Piece::None { more } => return Ok(more),
                Piece::Bytes(take) => take,
            };
            let old = out.len();
            out.resize(old + take, 0);
            let piece = out.get_mut(old..).unwrap_or_default();
            if let Err(error) = self.read_piece(piece, mode) {
                out.truncate(old);
                return Err(error);
            }
            capacity -= take;
        }
        Ok(self.may_have_more())
    }

    /// Overwrites `out` from its start on without searching or waiting for the disk. Returns the number of bytes and whether
    /// there may be more; `None` if no byte can be read so.
    pub(super) fn read_cached(&mut self, out: &mut [u8]) -> Option<(usize, bool)> {
        const MODE: ReadMode = ReadMode::CachedOnly;
        let mut filled = 0;
        while let Some(room) = out.get_mut(filled..).filter(|room| !room.is_empty()) {
            let read = match self.next_piece(room.len(), MODE) {
                Ok(Piece::None { more: false }) => return Some((filled, false)),
                Ok(Piece::Bytes(take)) => {
                    let piece = room.get_mut(..take).unwrap_or_default();
                    self.read_piece(piece, MODE).map(|()| take)
                }
                Ok(Piece::None { more: true }) | Err(_) => break,
            };
            // The bytes read so far are valid; the next read may wait.
            let Ok(read) = read else { break };
            filled += read;
        }
        if filled == 0 && !out.is_empty() {
            return None;
        }
        Some((filled, self.may_have_more()))
    }

    /// Finds the next bytes to read, at most `most`.
    fn next_piece(&mut self, most: usize, mode: ReadMode) -> Result<Piece, StorageError> {
        loop {
            if let Some(range) = self.ranges.front() {
                let length = usize::try_from(range.length).map_or(most, |length| length.min(most));
                return Ok(Piece::Bytes(length));
            }
            match (mode, self.selection.as_ref().map(Selection::mode)) {
                (_, None) => return Ok(Piece::None { more: false }),
                (ReadMode::CachedOnly, Some(ReadMode::Blocking)) => return Ok(Piece::None { more: true }),
                _ => self.refill()?,
            }
        }
    }

    /// Fills `piece`, whose length is that of a [`Piece::Bytes`], and moves on.
    fn read_piece(&mut self, piece: &mut [u8], mode: ReadMode) -> Result<(), StorageError> {
        let Some(range) = self.ranges.front_mut() else {
            return Ok(());
        };
        self.generation
            .read_with_mode(self.encoding, piece, range.offset, mode)?;
        let length = piece.len() as u64;
        if let Some(last) = &mut self.last {
            let offset = range.offset;
            last.push_back(BlobRange { offset, length });
        }
        range.offset += length;
        range.length = range.length.saturating_sub(length);
        if range.length == 0 {
            self.ranges.pop_front();
        }
        Ok(())
    }

    /// Forgets all ranges but those of the last `count` bytes.
    fn remember(&mut self, count: usize) {
        let Some(last) = &mut self.last else { return };
        let mut excess = last.iter().map(|range| range.length).sum::<u64>();
        excess = excess.saturating_sub(count as u64);
        while let Some(first) = last.front()
            && first.length <= excess
        {
            excess -= first.length;
            last.pop_front();
        }
    }

    /// Goes back by `count` bytes, which must be remembered.
    fn go_back(&mut self, count: usize) {
        let mut count = count as u64;
        for range in self.last.take().into_iter().flatten().rev() {
            let length = range.length.min(count);
            if length == 0 {
                break;
            }
            count -= length;
            let offset = range.offset + range.length - length;
            match self.ranges.front_mut() {
                Some(next) if next.offset == range.offset + range.length => {
                    next.offset = offset;
                    next.length += length;
                }
                _ => self.ranges.push_front(BlobRange { offset, length }),
            }
        }
        self.last = Some(VecDeque::new());
    }

    fn may_have_more(&self) -> bool {
        !self.ranges.is_empty() || self.selection.is_some()
    }

    /// Returns the remaining length. Ranges found on the way are kept as far as one refill goes.
    pub(super) fn length(&mut self) -> Result<u64, StorageError> {
        self.refill()?;
        let found: u64 = self.ranges.iter().map(|range| range.length).sum();
        let rest = self
            .selection
            .as_ref()
            .map(|rest| self.generation.selected_length(rest));
        Ok(found + rest.transpose()?.unwrap_or_default())
    }

    /// Finds more ranges, unless the search has ended.
    fn refill(&mut self) -> Result<(), StorageError> {
        let Some(selection) = &mut self.selection else {
            return Ok(());
        };
        if let Some(ranges) = self.generation.next_ranges(selection)? {
            self.ranges.extend(ranges);
        }
        if selection.left() == 0 {
            self.selection = None;
        }
        Ok(())
    }
}

/// Iterator over the objects of content, one a line. Holds a chunk and the largest object so far, until [`Lines::release`].
pub(super) struct Lines {
    reader: ContentReader,
    bytes: Vec<u8>,
    /// Start of the line that was returned last.
    returned: usize,
    /// Start of the next line.
    start: usize,
    /// Position up to which no end of line was found.
    searched: usize,
    more: bool,
}

impl Lines {
    pub(super) fn new(mut reader: ContentReader) -> Self {
        reader.last = Some(VecDeque::new());
        Self {
            reader,
            bytes: Vec::new(),
            returned: 0,
            start: 0,
            searched: 0,
            more: true,
        }
    }

    /// Returns the next object without its end of line.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, StorageError> {
        loop {
            let rest = self.bytes.get(self.searched..).unwrap_or_default();
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let (start, end) = (self.start, self.searched + length);
                self.returned = start;
                self.start = end + 1;
                self.searched = self.start;
                return Ok(self.bytes.get(start..end));
            }
            if !self.more {
                return Ok(None);
            }
            self.bytes.drain(..self.start);
            self.reader.remember(self.bytes.len());
            self.start = 0;
            self.searched = self.bytes.len();
            self.more = self.reader.read(&mut self.bytes, CHUNK)?;
        }
    }

    /// Makes the object that was returned last the next one again.
    fn put_back(&mut self) {
        self.start = self.returned;
        self.searched = self.start;
    }

    /// Frees the memory. Objects that were read and not returned are read again.
    fn release(&mut self) {
        let rest = self.bytes.len() - self.start;
        self.reader.go_back(rest);
        self.more = self.more || rest > 0;
        self.bytes = Vec::new();
        (self.returned, self.start, self.searched) = (0, 0, 0);
    }
}

/// Returns an error once nobody waits for the response.
pub(super) fn unless_abandoned(abandoned: &Abandoned) -> Result<(), ReadError> {
    if abandoned.is_set() {
        return Err(ReadError::Abandoned);
    }
    Ok(())
}

/// Source of a response before compression.
pub(super) enum Source {
    /// Content, verbatim.
    Plain(ContentReader),
    /// Projections of its objects.
    Projected {
        lines: Lines,
        projection: Projection,
        /// Memory of the chunk that is produced.
        memory: Reservation,
    },
}

impl Source {
    pub(super) fn new(reader: ContentReader, projection: Option<Projection>, memory: Reservation) -> Self {
        match projection {
            None => Self::Plain(reader),
            Some(projection) => Self::Projected {
                lines: Lines::new(reader),
                projection,
                memory,
            },
        }
    }

    /// Takes the permits for a chunk of `size` bytes, if it needs some.
    pub(super) fn take_memory(&mut self, size: usize) -> Option<OwnedSemaphorePermit> {
        match self {
            Self::Plain(_) => None,
            Self::Projected { memory, .. } => memory.take(size),
        }
    }

    /// Waits until a large object of `size` bytes may be read.
    pub(super) async fn wait_for_memory(&mut self, size: usize) {
        if let Self::Projected { memory, .. } = self {
            memory.wait(size).await;
        }
    }

    /// Frees the memory of what was read ahead, while the client reads what was made of the rest.
    pub(super) fn release(&mut self) {
        match self {
            Self::Plain(_) => {}
            Self::Projected { lines, .. } => lines.release(),
        }
    }

    /// Appends to `out` until it has `enough` bytes (a projected object may exceed them); returns whether there may be
    /// more. Objects that project to little are read on for long, so the work stops with its response.
    ///
    /// A large object for which memory lacks ends the read. If it is the first one, the result is
    /// [`ReadError::TooManyLarge`], after which the read can be repeated.
    pub(super) fn fill(
        &mut self,
        out: &mut Vec<u8>,
        enough: usize,
        abandoned: &Abandoned,
    ) -> Result<bool, ReadError> {
        match self {
            Self::Plain(reader) => Ok(reader.read(out, enough.saturating_sub(out.len()))?),
            Self::Projected {
                lines,
                projection,
                memory,
            } => {
                while out.len() < enough {
                    unless_abandoned(abandoned)?;
                    let Some(object) = lines.next()? else {
                        return Ok(false);
                    };
                    let old = out.len();
                    projection.apply(object, out).map_err(ReadError::Object)?;
                    out.push(b'\n');
                    if out.len() - old <= CHUNK {
                        continue;
                    }
                    if let Err(lack) = memory.cover(out.len()) {
                        lines.put_back();
                        out.truncate(old);
                        out.shrink_to_fit();
                        return if old == 0 { Err(lack) } else { Ok(true) };
                    }
                }
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests;
