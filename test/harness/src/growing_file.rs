//! A file that grows by lines, such as the log of a running process.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// A file, and the number of its bytes that were read.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    offset: u64,
}

impl GrowingFile {
    /// Starts at the beginning of the file, which need not exist yet.
    pub fn from_start(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// Starts at the present end of the file.
    pub fn from_end(path: PathBuf) -> Self {
        let offset = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path, offset }
    }

    /// Returns the whole lines that the file gained since the last call.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn gained(&mut self) -> Result<Vec<u8>> {
        let path = self.path.display();
        let mut file = File::open(&self.path).with_context(|| format!("cannot open {path}"))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {path}"))?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(end.map_or(0, |at| at + 1));
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::GrowingFile;

    #[test]
    fn only_new_whole_lines_are_returned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, "one\n").unwrap();
        let mut all = GrowingFile::from_start(path.clone());
        let mut log = GrowingFile::from_end(path.clone());
        let append = |text: &str| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        assert_eq!(log.gained().unwrap(), b"");
        append("two\nthr");
        assert_eq!(log.gained().unwrap(), b"two\n");
        append("ee\n");
        assert_eq!(log.gained().unwrap(), b"three\n");
        assert_eq!(all.gained().unwrap(), b"one\ntwo\nthree\n");
    }
}
