//! Logs of the controllers under test, read as they grow.

use std::fs::File;
use std::io::{Read as _, Result, Seek as _, SeekFrom};
use std::path::PathBuf;

/// Logs, each with the number of bytes that were read.
#[derive(Debug)]
pub(crate) struct Logs(Vec<(PathBuf, u64)>);

impl Logs {
    /// Starts at the present ends of the logs.
    pub(crate) fn at_end<const N: usize>(paths: [PathBuf; N]) -> Self {
        let end = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
        Self(paths.map(|path| (path.clone(), end(&path))).into())
    }

    /// Returns the whole lines that the logs gained since the last call.
    ///
    /// # Errors
    /// A log cannot be read.
    pub(crate) fn gained(&mut self) -> Result<String> {
        let mut gained = String::new();
        for (path, read) in &mut self.0 {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(*read))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let lines = bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            gained.push_str(&String::from_utf8_lossy(&bytes[..lines]));
            *read += lines as u64;
        }
        Ok(gained)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::Logs;

    #[test]
    fn only_new_whole_lines_are_returned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, "one\n").unwrap();
        let mut logs = Logs::at_end([path.clone()]);
        let append = |text: &str| {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        assert_eq!(logs.gained().unwrap(), "");
        append("two\nthr");
        assert_eq!(logs.gained().unwrap(), "two\n");
        append("ee\n");
        assert_eq!(logs.gained().unwrap(), "three\n");
    }
}
