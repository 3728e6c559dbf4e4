//! Results of commands.

use std::io;

use serde_json::Value;

/// Result of a command, for programs and for people.
#[derive(Debug)]
pub(crate) struct Report {
    /// Value that `-o json` and `-o yaml` print.
    pub(crate) value: Value,
    /// Text that `-o table` prints; ends in a line feed.
    pub(crate) text: String,
    /// True for exit code 0, false for 1.
    pub(crate) positive: bool,
    /// True for exit code 2: a plan that would be refused.
    pub(crate) refused: bool,
}

impl Report {
    /// Creates a positive report.
    pub(crate) fn new(value: Value, text: String) -> Self {
        Self {
            value,
            text,
            positive: true,
            refused: false,
        }
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        if self.refused { 2 } else { u8::from(!self.positive) }
    }

    /// Returns the data as YAML, which kubectl reads back as the same value.
    pub(crate) fn yaml(&self) -> io::Result<String> {
        serde_saphyr::to_string(&self.value).map_err(io::Error::other)
    }

    /// Returns the report with the flag `positive`.
    pub(crate) fn positive(self, positive: bool) -> Self {
        Self { positive, ..self }
    }
}

#[cfg(test)]
mod tests {
    use olm_yaml::{Limits, document};
    use serde_json::json;

    use super::*;

    /// Texts that some YAML parsers read as another type, or as the end of a text.
    const TEXTS: &[&str] = &[
        "yes",
        "No",
        "ON",
        "y",
        "n",
        "012",
        "0o7",
        "08",
        "1e3",
        "1_000",
        "0x1f",
        "0b1",
        "~",
        "null",
        "",
        ".inf",
        ".5",
        "+1",
        "-",
        "--",
        "- x",
        "? x",
        ": x",
        "a: b",
        "a:",
        "a #b",
        "#c",
        "many\nlines\n",
        "a\n\n  b\nc",
        "\n lead",
        "trail \n",
        "tab\tx",
        "\tx",
        "x\t",
        " lead",
        "trail ",
        "\u{85}",
        "a\u{85}b",
        "'",
        "\"",
        "it's",
        "é😀",
        "2001-01-01",
        "1:30",
        "<<",
        "=",
        "!t",
        "&a",
        "*a",
        "%x",
        "@x",
        "`x",
        "|",
        ">",
        "---",
        "...",
        "a\u{2028}b",
        "\0",
        "\u{1b}[31m",
        "\u{7f}",
        "[a]",
        "{a: b}",
        "a\r\nb",
        "a\rb",
        "x\n\n\n",
        "\\",
        "\\n",
        "true",
        "1.0",
        "key: |\n  x",
    ];

    /// Checks that `kubectl apply`, which parses like `olm_yaml`, accepts `-o yaml`.
    #[test]
    fn yaml_reads_back_as_the_same_value() {
        for text in TEXTS {
            for value in [
                json!({"a": text}),
                json!([text]),
                json!({*text: 1}),
                json!({"a": [{"b": [text, {}]}, []]}),
            ] {
                let report = Report::new(value.clone(), String::new());
                let yaml = report.yaml().unwrap();
                let read = document(yaml.as_bytes(), &Limits::default()).unwrap();
                assert_eq!(read, value, "{yaml:?}");
            }
        }
    }
}
