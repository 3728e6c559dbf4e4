//! Compares the answers of both readers on texts, and classifies their differences.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use serde_json::Value;

use super::{Answer, Mode, Mutator, Oracle};

/// Number of texts that are compared at a time.
const BATCH: usize = 512;
/// Number of repeated questions to Go before an answer counts as different. If two keys of a mapping have the same JSON text,
/// such as `1` and `"1"`, Go picks one of them at random.
const ATTEMPTS: usize = 16;

/// Prefix of errors of `sigs.k8s.io/yaml`. Callers of the reader under test add this prefix themselves.
const PREFIX: &str = "error converting YAML to JSON: ";

/// A text on which the readers disagree.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Name of the text.
    pub name: String,
    /// Task for the readers.
    pub mode: Mode,
    /// The text.
    pub text: Vec<u8>,
    /// Answer of Go.
    pub go: Answer,
    /// Answer of the reader under test.
    pub ours: Answer,
}

/// Outcome of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of comparisons. Each text counts once for each mode.
    pub compared: usize,
    /// Number of texts that both readers refuse.
    pub refused: usize,
    /// Number of refusals with the same message as Go's.
    pub same_words: usize,
    /// Number of disagreements, by the listed deviation that explains them.
    pub deviations: BTreeMap<&'static str, usize>,
    /// Disagreements without a listed deviation.
    pub differences: Vec<Difference>,
}

impl Report {
    /// Adds the counts and differences of another report.
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.refused += other.refused;
        self.same_words += other.same_words;
        for (name, count) in other.deviations {
            *self.deviations.entry(name).or_default() += count;
        }
        self.differences.extend(other.differences);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            compared,
            refused,
            same_words,
            ..
        } = self;
        let differing = self.differences.len();
        write!(
            f,
            "{compared} compared, {refused} refused by both ({same_words} in the same words), {differing} differ"
        )?;
        for (name, count) in &self.deviations {
            write!(f, ", {count} deviate ({name})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "== {} as {:?}", self.name, self.mode)?;
        writeln!(f, "text: {:?}", String::from_utf8_lossy(&self.text))?;
        writeln!(
            f,
            "Go:   {:?} {}",
            self.go.error,
            Value::from(self.go.values.clone())
        )?;
        write!(
            f,
            "ours: {:?} {}",
            self.ours.error,
            Value::from(self.ours.values.clone())
        )
    }
}

/// Compares both readers on each of the named texts, in both modes.
///
/// # Errors
/// The oracle exited.
pub fn compare(oracle: &mut Oracle, texts: &[(String, Vec<u8>)]) -> Result<Report> {
    let mut report = Report::default();
    for batch in texts.chunks(BATCH) {
        let questions: Vec<(Mode, &[u8])> = batch
            .iter()
            .flat_map(|(_, text)| [Mode::Document, Mode::Stream].map(|mode| (mode, text.as_slice())))
            .collect();
        let answers = oracle.ask(&questions)?;
        for (at, (go, (mode, text))) in answers.into_iter().zip(&questions).enumerate() {
            let ours = Answer::ours(*mode, text);
            report.compared += 1;
            if let (Some(go), Some(ours)) = (&go.error, &ours.error) {
                report.refused += 1;
                report.same_words += usize::from(go.strip_prefix(PREFIX).unwrap_or(go) == ours);
            }
            if go.agrees(&ours) || agrees_again(oracle, *mode, text, &ours)? {
                continue;
            }
            if let Some(name) = deviation(text, &go, &ours) {
                *report.deviations.entry(name).or_default() += 1;
                continue;
            }
            report.differences.push(Difference {
                name: batch
                    .get(at / 2)
                    .map(|(name, _)| name.clone())
                    .unwrap_or_default(),
                mode: *mode,
                text: text.to_vec(),
                go,
                ours,
            });
        }
    }
    Ok(report)
}

/// Returns the deviation in `docs/deviations.md` that explains a disagreement. Except for the byte order mark, a deviation
/// explains only that the reader under test refuses a text that Go accepts.
fn deviation(text: &[u8], go: &Answer, ours: &Answer) -> Option<&'static str> {
    const REFUSALS: [(&str, &str); 7] = [
        (
            "control characters are not allowed",
            "encoding behind the first document",
        ),
        ("UTF-8 octet", "encoding behind the first document"),
        ("UTF-16 character", "encoding behind the first document"),
        ("surrogate area", "encoding behind the first document"),
        (
            "has no JSON form",
            "value without JSON form that a repeated key replaces",
        ),
        ("is nested deeper than", "limits"),
        ("bytes of memory", "limits"),
    ];
    if has_inner_mark(text) {
        return Some("byte order mark inside a text");
    }
    let error = ours.error.as_deref().filter(|_| go.error.is_none())?;
    // A stream that looks like JSON reports its error as JSON, not as YAML.
    let as_yaml = Answer::ours(Mode::Document, text).error.unwrap_or_default();
    let refusal = REFUSALS
        .into_iter()
        .find(|(words, _)| error.contains(words) || as_yaml.contains(words));
    refusal.map(|(_, name)| name)
}

/// Returns true if a byte order mark occurs after the beginning.
fn has_inner_mark(text: &[u8]) -> bool {
    let unit = |mark: [u8; 2]| text.chunks_exact(2).skip(1).any(|pair| pair == mark);
    match text {
        [0xff, 0xfe, ..] => unit([0xff, 0xfe]),
        [0xfe, 0xff, ..] => unit([0xfe, 0xff]),
        _ => text.windows(3).skip(1).any(|bytes| bytes == [0xef, 0xbb, 0xbf]),
    }
}

/// Returns true if Go gives the same answer as the reader under test in one of [`ATTEMPTS`] repetitions.
fn agrees_again(oracle: &mut Oracle, mode: Mode, text: &[u8], ours: &Answer) -> Result<bool> {
    let questions = vec![(mode, text); ATTEMPTS];
    Ok(oracle.ask(&questions)?.iter().any(|go| go.agrees(ours)))
}

/// Compares both readers on `count` mutations of texts. Equal seeds give equal mutations.
///
/// # Errors
/// The oracle exited.
pub fn mutations(oracle: &mut Oracle, corpus: &[Vec<u8>], seed: u64, count: usize) -> Result<Report> {
    let mut mutator = Mutator::new(seed);
    let mut report = Report::default();
    let mut left = count;
    while left > 0 {
        let batch = left.min(BATCH);
        let texts: Vec<_> = (0..batch)
            .map(|at| (format!("mutation {}", count - left + at), mutator.text(corpus)))
            .collect();
        report.add(compare(oracle, &texts)?);
        left -= batch;
    }
    Ok(report)
}
