//! Archive of a support bundle: tar, compressed by gzip. Everything is redacted on its way in.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::redact;

/// Maximum size of a file in the archive, in bytes; the end of a longer text is kept, which is newer in logs.
const MAX_FILE: usize = 8 << 20;
/// Maximum size of all files, in bytes.
const MAX_TOTAL: usize = 128 << 20;

/// Archive that is being written.
pub(crate) struct Archive<W: Write> {
    tar: tar::Builder<GzEncoder<W>>,
    folder: String,
    time: u64,
    left: usize,
    missing: Vec<String>,
}

impl<W: Write> Archive<W> {
    /// Starts an archive whose files are in `folder` and have a time in seconds since 1970.
    pub(crate) fn new(out: W, folder: &str, time: u64) -> Self {
        Self {
            tar: tar::Builder::new(GzEncoder::new(out, Compression::default())),
            folder: folder.to_owned(),
            time,
            left: MAX_TOTAL,
            missing: Vec::new(),
        }
    }

    /// Adds an object as YAML.
    pub(crate) fn object(&mut self, path: &str, object: &Value) -> io::Result<()> {
        let mut object = object.clone();
        redact::object(&mut object);
        let text = serde_saphyr::to_string(&object).map_err(io::Error::other)?;
        self.write(path, &text)
    }

    /// Adds a text, such as a log.
    pub(crate) fn text(&mut self, path: &str, text: &str) -> io::Result<()> {
        self.write(path, &redact::text(text))
    }

    /// Notes something that could not be collected.
    pub(crate) fn missing(&mut self, what: &str, why: &str) {
        self.missing.push(redact::text(&format!("{what}: {why}")));
    }

    /// Returns what could not be collected.
    pub(crate) fn all_missing(&self) -> &[String] {
        &self.missing
    }

    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        let mut start = text.len().saturating_sub(MAX_FILE);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let kept = text.get(start..).unwrap_or_default();
        if kept.len() > self.left {
            self.missing(path, "the bundle has reached its maximum size");
            return Ok(());
        }
        if start > 0 {
            self.missing(
                path,
                &format!("its first {start} bytes are left out: the file is too long"),
            );
        }
        self.left -= kept.len();
        self.append(path, kept)
    }

    fn append(&mut self, path: &str, text: &str) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        self.tar
            .append_data(&mut header, format!("{}/{path}", self.folder), text.as_bytes())
    }

    /// Adds the list of what is missing, and ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        let mut text = self.missing.join("\n");
        text.push('\n');
        self.append("not-collected.txt", &text)?;
        self.tar.into_inner()?.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use serde_json::json;

    use super::*;

    fn files(bytes: &[u8]) -> BTreeMap<String, String> {
        let mut archive = tar::Archive::new(GzDecoder::new(bytes));
        let mut files = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            files.insert(path, text);
        }
        files
    }

    #[test]
    fn nothing_enters_unredacted() {
        let mut archive = Archive::new(Vec::new(), "olm", 0);
        archive
            .object(
                "secret.yaml",
                &json!({"kind": "Secret", "data": {"a": "c4n4ry-5ecret"}}),
            )
            .unwrap();
        archive
            .text("pod.log", "line one\nAuthorization: Bearer c4n4ry-5ecret\n")
            .unwrap();
        archive.missing("metrics", "GET https://u:c4n4ry-5ecret@h failed");
        let files = files(&archive.finish().unwrap());
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["olm/not-collected.txt", "olm/pod.log", "olm/secret.yaml"]);
        for (name, text) in &files {
            assert!(!text.contains("c4n4ry-5ecret"), "{name}: {text}");
        }
        assert!(files["olm/pod.log"].starts_with("line one\n"));
    }

    #[test]
    fn sizes_are_capped() {
        let mut archive = Archive::new(Vec::new(), "olm", 0);
        let long = format!("{}end", "é".repeat(MAX_FILE / 2));
        archive.text("long.log", &long).unwrap();
        archive.left = 2;
        archive.text("more.log", "four").unwrap();
        let files = files(&archive.finish().unwrap());
        assert!(files["olm/long.log"].len() <= MAX_FILE && files["olm/long.log"].ends_with("end"));
        assert!(!files.contains_key("olm/more.log"));
        let missing = &files["olm/not-collected.txt"];
        assert!(
            missing.contains("long.log: its first") && missing.contains("more.log: the bundle"),
            "{missing}"
        );
    }
}
