//! Texts through both readers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{Answer, Mode, Mutator, Oracle};

/// Texts that are compared at a time.
const BATCH: usize = 512;
/// Times that Go is asked again before an answer counts as different: where two keys of one mapping have the same text
/// in JSON, such as `1` and `"1"`, Go picks one of both at random.
const ATTEMPTS: usize = 16;

/// A text on which the readers disagree.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Name of the text.
    pub name: String,
    /// Task of the readers.
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
    /// Comparisons: each text counts once for each mode.
    pub compared: usize,
    /// Those of them that both readers refuse.
    pub refused: usize,
    /// Texts that the reader under test refuses and Go's does not, by the deviation that explains the refusal.
    pub deviations: BTreeMap<&'static str, usize>,
    /// Every disagreement that no deviation explains.
    pub differences: Vec<Difference>,
}

impl Report {
    /// Adds the counts and differences of another report.
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.refused += other.refused;
        for (name, count) in other.deviations {
            *self.deviations.entry(name).or_default() += count;
        }
        self.differences.extend(other.differences);
    }
}

/// Reads each of the named texts with both readers in both modes.
///
/// # Errors
/// If the oracle ends.
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
            report.refused += usize::from(go.error.is_some() && ours.error.is_some());
            if go.agrees(&ours) || agrees_again(oracle, *mode, text, &ours)? {
                continue;
            }
            if let Some(name) = deviation(&go, &ours) {
                *report.deviations.entry(name).or_default() += 1;
                continue;
            }
            report.differences.push(Difference {
                name: batch.get(at / 2).map(|(name, _)| name.clone()).unwrap_or_default(),
                mode: *mode,
                text: text.to_vec(),
                go,
                ours,
            });
        }
    }
    Ok(report)
}

/// Returns the deviation that explains why a text is refused which Go takes; each is in `docs/deviations.md`. A text that
/// Go refuses, or reads as another value, is never explained.
fn deviation(go: &Answer, ours: &Answer) -> Option<&'static str> {
    const REFUSALS: [(&str, &str); 7] = [
        ("control characters are not allowed", "encoding behind the first document"),
        ("UTF-8 octet", "encoding behind the first document"),
        ("UTF-16 character", "encoding behind the first document"),
        ("surrogate area", "encoding behind the first document"),
        ("has no JSON form", "value without JSON form that a repeated key replaces"),
        ("is nested deeper than", "limits"),
        ("bytes of memory", "limits"),
    ];
    let error = ours.error.as_deref().filter(|_| go.error.is_none())?;
    let refusal = REFUSALS.into_iter().find(|(text, _)| error.contains(text));
    refusal.map(|(_, name)| name)
}

fn agrees_again(oracle: &mut Oracle, mode: Mode, text: &[u8], ours: &Answer) -> Result<bool> {
    let questions = vec![(mode, text); ATTEMPTS];
    Ok(oracle.ask(&questions)?.iter().any(|go| go.agrees(ours)))
}

/// Compares every file of a folder and its folders, but for files above 16 MiB.
///
/// # Errors
/// If a file cannot be read or the oracle ends.
pub fn files(oracle: &mut Oracle, dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Report> {
    let mut report = Report::default();
    let mut texts = Vec::new();
    let mut size = 0;
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let about = fs::symlink_metadata(&path)?;
            if about.is_dir() {
                folders.push(path);
            } else if about.is_file() && about.len() <= 16 << 20 && wanted(&path) {
                let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                size += text.len();
                texts.push((path.display().to_string(), text));
            }
            if size > 32 << 20 {
                report.add(compare(oracle, &std::mem::take(&mut texts))?);
                size = 0;
            }
        }
    }
    report.add(compare(oracle, &texts)?);
    Ok(report)
}

/// Compares `count` mutations of texts. The same seed gives the same mutations.
///
/// # Errors
/// If the oracle ends.
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
