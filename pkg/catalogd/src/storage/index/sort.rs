//! External merge sort: sorted runs in an unnamed file, merged at the end.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Bytes held in memory before a run is spilled to disk.
const MEMORY: usize = 3 * 1024 * 1024;
/// Read-ahead of each run while merging, in bytes.
const READ_AHEAD: usize = 16 * 1024;
/// Maximum number of runs merged at once; each costs [`READ_AHEAD`].
const MAX_RUNS: usize = 512;
/// Bytes of an item on disk beside its text: text length and number.
const ITEM_HEADER: usize = 12;

/// Sorts items by the bytes of their text, then by their number.
pub(super) struct Sorter {
    folder: PathBuf,
    memory: usize,
    texts: Vec<u8>,
    items: Vec<Item>,
    spilled: Option<Spilled>,
}

#[derive(Clone, Copy)]
struct Item {
    start: u32,
    length: u32,
    number: u64,
}

struct Spilled {
    file: BufWriter<File>,
    end: u64,
    /// Start and end of each run.
    runs: Vec<(u64, u64)>,
}

impl Sorter {
    /// Creates a sorter that spills to the file system of `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self::with_memory(folder, MEMORY)
    }

    fn with_memory(folder: &Path, memory: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            memory,
            texts: Vec::new(),
            items: Vec::new(),
            spilled: None,
        }
    }

    /// Adds an item. A text equal to that of the item `same` items ago takes no further memory.
    pub(super) fn push(&mut self, text: &[u8], number: u64, same: usize) -> io::Result<()> {
        let before = self
            .items
            .len()
            .checked_sub(same)
            .and_then(|at| self.items.get(at));
        let (start, length) = match before {
            Some(item) if text_of(&self.texts, item) == text => (item.start, item.length),
            _ => {
                let start = narrow(self.texts.len())?;
                self.texts.extend_from_slice(text);
                (start, narrow(text.len())?)
            }
        };
        self.items.push(Item {
            start,
            length,
            number,
        });
        if self.texts.len() + self.items.len() * size_of::<Item>() >= self.memory {
            self.spill()?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        let texts = &self.texts;
        self.items.sort_unstable_by(|a, b| {
            text_of(texts, a)
                .cmp(text_of(texts, b))
                .then(a.number.cmp(&b.number))
        });
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => Spilled {
                file: BufWriter::with_capacity(READ_AHEAD, tempfile::tempfile_in(&self.folder)?),
                end: 0,
                runs: Vec::new(),
            },
        };
        let begin = spilled.end;
        for item in &self.items {
            let text = text_of(&self.texts, item);
            spilled.write(text, item.number)?;
        }
        spilled.runs.push((begin, spilled.end));
        self.items.clear();
        self.texts.clear();
        if spilled.runs.len() >= MAX_RUNS {
            spilled.merge_runs(&self.folder)?;
        }
        self.spilled = Some(spilled);
        Ok(())
    }

    /// Calls `visit` with all items in order.
    pub(super) fn for_each<E: From<io::Error>>(
        mut self,
        mut visit: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.spilled.is_some() && !self.items.is_empty() {
            self.spill()?;
        }
        if let Some(spilled) = self.spilled {
            // The runs are on disk; their memory is free for the merge.
            drop((self.texts, self.items));
            return spilled.for_each(visit);
        }
        self.sort();
        for item in &self.items {
            visit(text_of(&self.texts, item), item.number)?;
        }
        Ok(())
    }
}

impl Spilled {
    fn write(&mut self, text: &[u8], number: u64) -> io::Result<()> {
        self.file.write_all(&narrow(text.len())?.to_le_bytes())?;
        self.file.write_all(&number.to_le_bytes())?;
        self.file.write_all(text)?;
        self.end += (ITEM_HEADER + text.len()) as u64;
        Ok(())
    }

    /// Merges all runs into one.
    fn merge_runs(&mut self, folder: &Path) -> io::Result<()> {
        let merged = Self {
            file: BufWriter::with_capacity(READ_AHEAD, tempfile::tempfile_in(folder)?),
            end: 0,
            runs: Vec::new(),
        };
        let former = std::mem::replace(self, merged);
        former.for_each(|text, number| self.write(text, number))?;
        self.runs.push((0, self.end));
        Ok(())
    }

    fn for_each<E: From<io::Error>>(
        self,
        mut visit: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut heads = BinaryHeap::new();
        for (at, end) in self.runs {
            let mut run = Run {
                file: BufReader::with_capacity(READ_AHEAD, FileSlice { file: &file, at, end }),
                text: Vec::new(),
                number: 0,
            };
            if run.advance()? {
                heads.push(Reverse(run));
            }
        }
        while let Some(Reverse(mut run)) = heads.pop() {
            visit(&run.text, run.number)?;
            if run.advance()? {
                heads.push(Reverse(run));
            }
        }
        Ok(())
    }
}

/// Sorted part of a file, positioned at its next item.
struct Run<'a> {
    file: BufReader<FileSlice<'a>>,
    text: Vec<u8>,
    number: u64,
}

impl Run<'_> {
    /// Reads the next item; returns false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        if self.file.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let (mut length, mut number) = ([0; 4], [0; 8]);
        self.file.read_exact(&mut length)?;
        self.file.read_exact(&mut number)?;
        self.number = u64::from_le_bytes(number);
        self.text.resize(u32::from_le_bytes(length) as usize, 0);
        self.file.read_exact(&mut self.text)?;
        Ok(true)
    }
}

impl Ord for Run<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Run<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Run<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Run<'_> {}

/// Part of a file, read without moving the file's position.
struct FileSlice<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for FileSlice<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self
            .file
            .read_at(buffer.get_mut(..left).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Temporary bytes, written first and then read once from the beginning; small contents stay in memory.
pub(super) struct ScratchFile(BufWriter<tempfile::SpooledTempFile>);

impl ScratchFile {
    /// Maximum size in memory, in bytes.
    const SPOOL: usize = 64 * 1024;

    pub(super) fn new(folder: &Path) -> Self {
        Self(BufWriter::new(tempfile::spooled_tempfile_in(Self::SPOOL, folder)))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Returns a reader from the beginning.
    pub(super) fn read(self) -> io::Result<BufReader<tempfile::SpooledTempFile>> {
        let mut file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(BufReader::with_capacity(READ_AHEAD, file))
    }
}

fn text_of<'t>(texts: &'t [u8], item: &Item) -> &'t [u8] {
    let start = item.start as usize;
    texts.get(start..start + item.length as usize).unwrap_or_default()
}

fn narrow(number: usize) -> io::Result<u32> {
    u32::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts words with little memory and returns the number of runs at the end, too.
    fn sorted(memory: usize, count: u64) -> (Vec<(Vec<u8>, u64)>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::with_memory(folder.path(), memory);
        for number in 0..count {
            let text = format!("word-{}", (number / 3 * 7919) % 101);
            sorter.push(text.as_bytes(), number, 1).unwrap();
        }
        let runs = sorter.spilled.as_ref().map_or(0, |spilled| spilled.runs.len());
        let mut seen = Vec::new();
        sorter
            .for_each(|text, number| {
                seen.push((text.to_vec(), number));
                io::Result::Ok(())
            })
            .unwrap();
        (seen, runs)
    }

    #[test]
    fn runs_on_disk_give_the_same_order_as_memory() {
        let (keys_wanted, runs) = sorted(MEMORY, 5000);
        assert_eq!((keys_wanted.len(), runs), (5000, 0));
        assert!(keys_wanted.is_sorted());
        let (seen, runs) = sorted(400, 5000);
        assert!(runs > 100, "{runs}");
        assert_eq!(seen, keys_wanted);
        // So many runs that some are merged on the way.
        let (seen, runs) = sorted(60, 5000);
        assert!(runs < MAX_RUNS, "{runs}");
        assert_eq!(seen, keys_wanted);
    }

    #[test]
    fn scratch_reads_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut scratch = ScratchFile::new(folder.path());
        let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        for piece in bytes.chunks(1000) {
            scratch.write(piece).unwrap();
        }
        let mut seen = Vec::new();
        scratch.read().unwrap().read_to_end(&mut seen).unwrap();
        assert_eq!(seen, bytes);
    }
}
