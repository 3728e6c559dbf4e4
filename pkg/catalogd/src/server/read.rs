//! Reading stored content in order, a bounded piece at a time. All of it blocks on the disk, but for what a search
//! selects that does not wait.

use std::{collections::VecDeque, io, sync::Arc};

use super::{piece::PIECE, project::Projection};
use crate::storage::{Encoding, Generation, Section, Selection, StorageError, Wait};

/// Why an answer cannot be made to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("stored content cannot be read")]
    Storage(#[from] StorageError),
    #[error("a stored object is not JSON")]
    Object(#[source] serde_json::Error),
    #[error("an answer cannot be compressed")]
    Compress(#[source] io::Error),
}

/// The bytes of sections, one after the other.
pub(super) struct Raw {
    generation: Arc<Generation>,
    form: Encoding,
    sections: VecDeque<Section>,
    selection: Option<Selection>,
    wait: Wait,
}

impl Raw {
    /// `length` bytes of a form, from `start` on.
    pub(super) fn range(generation: Arc<Generation>, form: Encoding, start: u64, length: u64) -> Self {
        let sections = VecDeque::from([Section {
            offset: start,
            length,
        }]);
        Self {
            generation,
            form,
            sections,
            selection: None,
            wait: Wait::ForDisk,
        }
    }

    /// The whole content as it is.
    pub(super) fn whole(generation: Arc<Generation>) -> Self {
        let size = generation.size(Encoding::Identity);
        Self::range(generation, Encoding::Identity, 0, size)
    }

    /// What a search selects.
    pub(super) fn selected(generation: Arc<Generation>, selection: Selection) -> Self {
        Self {
            generation,
            form: Encoding::Identity,
            sections: VecDeque::new(),
            wait: selection.wait(),
            selection: Some(selection),
        }
    }

    /// Appends at most `room` bytes, fewer only at the end; whether there may be more.
    pub(super) fn read(&mut self, out: &mut Vec<u8>, room: usize) -> Result<bool, StorageError> {
        self.read_waiting(out, room, self.wait)
    }

    /// As [`Raw::read`], waiting only as far as `wait` says.
    fn read_waiting(&mut self, out: &mut Vec<u8>, mut room: usize, wait: Wait) -> Result<bool, StorageError> {
        while room > 0 {
            let Some(section) = self.sections.front_mut() else {
                let searching = self.selection.as_ref().map(Selection::wait);
                match (wait, searching) {
                    (_, None) => return Ok(false),
                    (Wait::Never, Some(Wait::ForDisk)) => return Ok(true),
                    _ => self.refill()?,
                }
                continue;
            };
            let take = usize::try_from(section.length).map_or(room, |length| length.min(room));
            let old = out.len();
            out.resize(old + take, 0);
            let piece = out.get_mut(old..).unwrap_or_default();
            let read = self
                .generation
                .read_waiting(self.form, piece, section.offset, wait);
            if let Err(error) = read {
                out.truncate(old);
                return Err(error);
            }
            room -= take;
            section.offset += take as u64;
            section.length -= take as u64;
            if section.length == 0 {
                self.sections.pop_front();
            }
        }
        Ok(!self.sections.is_empty() || self.selection.is_some())
    }

    /// As [`Raw::read`], as far as it takes neither a search nor a wait for the disk; `None` when it takes one at once.
    pub(super) fn read_cached(&mut self, out: &mut Vec<u8>, room: usize) -> Option<bool> {
        let before = out.len();
        match self.read_waiting(out, room, Wait::Never) {
            Ok(false) => Some(false),
            // What was read until then is right; who reads on may wait.
            Ok(true) | Err(_) => (out.len() > before).then_some(true),
        }
    }

    /// The length of all that is still to be read. What is looked up for that is kept, as far as one look goes.
    pub(super) fn length(&mut self) -> Result<u64, StorageError> {
        self.refill()?;
        let found: u64 = self.sections.iter().map(|section| section.length).sum();
        let rest = self
            .selection
            .as_ref()
            .map(|rest| self.generation.length_of(rest));
        Ok(found + rest.transpose()?.unwrap_or_default())
    }

    /// Looks up more sections, if a search is not at its end.
    fn refill(&mut self) -> Result<(), StorageError> {
        let Some(selection) = &mut self.selection else {
            return Ok(());
        };
        if let Some(sections) = self.generation.next_sections(selection)? {
            self.sections.extend(sections);
        }
        if selection.left() == 0 {
            self.selection = None;
        }
        Ok(())
    }
}

/// The objects of content, one a line. Holds one piece and one object.
pub(super) struct Lines {
    raw: Raw,
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no end of it was found.
    searched: usize,
    more: bool,
}

impl Lines {
    pub(super) fn new(raw: Raw) -> Self {
        Self {
            raw,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            more: true,
        }
    }

    /// The next object without its end of line.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, StorageError> {
        loop {
            let rest = self.bytes.get(self.searched..).unwrap_or_default();
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let (start, end) = (self.start, self.searched + length);
                self.start = end + 1;
                self.searched = self.start;
                return Ok(self.bytes.get(start..end));
            }
            if !self.more {
                return Ok(None);
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            self.searched = self.bytes.len();
            self.more = self.raw.read(&mut self.bytes, PIECE)?;
        }
    }
}

/// What an answer is made of, before it is compressed.
pub(super) enum Source {
    /// Content as it is.
    Plain(Raw),
    /// Parts of its objects.
    Projected(Lines, Projection),
}

impl Source {
    pub(super) fn new(raw: Raw, projection: Option<Projection>) -> Self {
        match projection {
            None => Self::Plain(raw),
            Some(projection) => Self::Projected(Lines::new(raw), projection),
        }
    }

    /// Appends until `out` has `enough` bytes (a projected object may go beyond); whether there may be more.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, enough: usize) -> Result<bool, ReadError> {
        match self {
            Self::Plain(raw) => Ok(raw.read(out, enough.saturating_sub(out.len()))?),
            Self::Projected(lines, projection) => {
                while out.len() < enough {
                    let Some(object) = lines.next()? else {
                        return Ok(false);
                    };
                    projection.apply(object, out).map_err(ReadError::Object)?;
                    out.push(b'\n');
                }
                Ok(true)
            }
        }
    }
}
