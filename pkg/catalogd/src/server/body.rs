//! Bodies read from disk piece by piece, at the client's pace.

use std::{collections::VecDeque, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;

use crate::storage::{Encoding, Generation, Section, Selection, StorageError};

/// Bytes read and held per response.
const PIECE: u64 = 128 * 1024;

/// What is still to be sent.
struct Reader {
    generation: Arc<Generation>,
    encoding: Encoding,
    sections: VecDeque<Section>,
    selection: Option<Selection>,
}

/// `length` bytes of the content in a form, from `start` on.
pub(super) fn range(generation: Arc<Generation>, encoding: Encoding, start: u64, length: u64) -> Body {
    let sections = VecDeque::from([Section {
        offset: start,
        length,
    }]);
    stream(Reader {
        generation,
        encoding,
        sections,
        selection: None,
    })
}

/// What a search selects, as it is.
pub(super) fn selected(generation: Arc<Generation>, selection: Selection) -> Body {
    let sections = VecDeque::new();
    stream(Reader {
        generation,
        encoding: Encoding::Identity,
        sections,
        selection: Some(selection),
    })
}

fn stream(reader: Reader) -> Body {
    Body::from_stream(stream::try_unfold(reader, async |mut reader| {
        let read = tokio::task::spawn_blocking(move || reader.piece().map(|piece| (piece, reader)));
        match read.await {
            Ok(Ok((Some(piece), reader))) => Ok(Some((piece, reader))),
            Ok(Ok((None, _))) => Ok(None),
            Ok(Err(error)) => {
                let text = olm_runtime::telemetry::chain(&error);
                tracing::error!(error = text, "content cannot be read, answer cut off");
                Err(std::io::Error::other(error))
            }
            Err(stopped) => Err(std::io::Error::other(stopped)),
        }
    }))
}

impl Reader {
    /// The next bytes; blocks on the disk.
    fn piece(&mut self) -> Result<Option<Bytes>, StorageError> {
        let mut piece = Vec::new();
        loop {
            let room = PIECE.saturating_sub(piece.len() as u64);
            if room == 0 {
                break;
            }
            let Some(section) = self.sections.front_mut() else {
                if self.refill()? {
                    continue;
                }
                break;
            };
            let take = section.length.min(room);
            let old = piece.len();
            piece.resize(old + usize::try_from(take).unwrap_or_default(), 0);
            let bytes = piece.get_mut(old..).unwrap_or_default();
            self.generation.read_at(self.encoding, bytes, section.offset)?;
            section.offset += take;
            section.length -= take;
            if section.length == 0 {
                self.sections.pop_front();
            }
        }
        Ok((!piece.is_empty()).then(|| piece.into()))
    }

    /// Looks up more sections; whether there may be any.
    fn refill(&mut self) -> Result<bool, StorageError> {
        let Some(selection) = &mut self.selection else {
            return Ok(false);
        };
        let Some(sections) = self.generation.next_sections(selection)? else {
            return Ok(false);
        };
        self.sections.extend(sections);
        Ok(true)
    }
}
