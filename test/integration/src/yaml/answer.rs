//! Answers of YAML readers, in a form that both readers share.

use olm_yaml::Limits;
use serde_json::Value;

/// Task for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads the first document of a text, as `sigs.k8s.io/yaml` does.
    Document,
    /// Reads all documents of a stream, as the YAML-or-JSON decoder of `k8s.io/apimachinery` does.
    Stream,
}

/// Answer of a reader: the documents that are not null, and the error that ended the reading, if any.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Values of the documents that are not null.
    pub values: Vec<Value>,
    /// Text of the error.
    pub error: Option<String>,
}

impl Answer {
    /// Returns true if both readers accepted equal values, or both failed. Error messages are not compared.
    pub fn agrees(&self, other: &Self) -> bool {
        self.error.is_some() == other.error.is_some() && (self.error.is_some() || self.values == other.values)
    }

    /// Returns the answer of the reader under test.
    pub fn ours(mode: Mode, text: &[u8]) -> Self {
        let limits = Limits::default();
        let read = match mode {
            Mode::Document => olm_yaml::document(text, &limits).map(|value| vec![value]),
            Mode::Stream => olm_yaml::documents(text, &limits),
        };
        match read {
            Ok(values) => Self {
                values: values.into_iter().filter(|value| !value.is_null()).collect(),
                error: None,
            },
            Err(error) => Self {
                values: Vec::new(),
                error: Some(error.to_string()),
            },
        }
    }

    /// Parses the response of the Go program.
    pub(super) fn parse(response: &[u8]) -> Self {
        let mut answer = Self {
            values: Vec::new(),
            error: None,
        };
        for line in response
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            match line.split_first() {
                Some((b'v', text)) => match olm_yaml::json(text, &Limits::default()) {
                    Ok(Value::Null) => {}
                    Ok(value) => answer.values.push(value),
                    Err(error) => answer.error = Some(format!("the oracle's JSON: {error}")),
                },
                Some((_, text)) => answer.error = Some(String::from_utf8_lossy(text).into_owned()),
                None => {}
            }
        }
        answer
    }
}
