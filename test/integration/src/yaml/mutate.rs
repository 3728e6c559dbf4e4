//! Random mutations of real texts at places where YAML readers are known to disagree.

use rand::prelude::IndexedRandom as _;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::pieces::{BLOCKS, CHARACTERS, LINES_OF_NOTE, SCALARS, TAGS};

/// Maximum number of lines of a mutated piece.
const LINES: usize = 30;
/// Maximum number of mutations of one text.
const MOST: usize = 3;

/// Generator of mutations. Equal seeds give equal mutations.
pub struct Mutator {
    random: StdRng,
}

impl Mutator {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// Returns a piece of one of the texts with a few mutations.
    pub fn text(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let whole = corpus
            .choose(&mut self.random)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let whole = String::from_utf8_lossy(whole);
        let mut lines: Vec<String> = self.piece(&whole);
        for _ in 0..self.random.random_range(1..=MOST) {
            self.mutate(&mut lines);
        }
        let end = if self.random.random_bool(0.8) { "\n" } else { "" };
        let text = lines.join("\n") + end;
        self.encode(text)
    }

    /// Cuts a block of lines out of a text and removes the indentation of the block, so that most pieces are valid documents.
    fn piece(&mut self, whole: &str) -> Vec<String> {
        let lines: Vec<&str> = whole.lines().collect();
        let start = self.random.random_range(0..lines.len().max(1));
        let count = self.random.random_range(1..=LINES);
        let margin = lines.get(start).map_or(0, |line| indentation(line));
        lines
            .iter()
            .skip(start)
            .take(count)
            .take_while(|line| indentation(line) >= margin)
            .map(|line| line.get(margin..).unwrap_or_default().to_owned())
            .collect()
    }

    /// Applies one random mutation.
    fn mutate(&mut self, lines: &mut Vec<String>) {
        let at = self.random.random_range(0..lines.len().max(1));
        let Some(line) = lines.get(at).cloned() else {
            lines.push("a: 1".to_owned());
            return;
        };
        let new = match self.random.random_range(0..17) {
            0 => " ".repeat(self.random.random_range(1..4)) + &line,
            1 => line
                .get(indentation(&line).min(self.random.random_range(1..4))..)
                .unwrap_or_default()
                .to_owned(),
            2 => {
                let scalar = self.pick(SCALARS);
                replace_value(&line, scalar)
            }
            3 => {
                let tag = self.pick(TAGS);
                replace_value(&line, &format!("{tag} {}", value(&line)))
            }
            4 => {
                let (tag, scalar) = (self.pick(TAGS), self.pick(SCALARS));
                replace_value(&line, &format!("{tag} {scalar}"))
            }
            5 => {
                let block = self.pick(BLOCKS);
                replace_value(&line, block)
            }
            6 => {
                let quote = if self.random.random_bool(0.5) { "'" } else { "\"" };
                replace_value(&line, &format!("{quote}{}{quote}", value(&line)))
            }
            // A quoted or plain scalar that continues in the next lines, with any indentation.
            7 => {
                let quote = self.pick(&["'", "\"", ""]);
                let indent = " ".repeat(self.random.random_range(0..6));
                let words = value(&line).replace(' ', &format!("\n{indent}"));
                replace_value(&line, &format!("{quote}{words}{quote}"))
            }
            8 => line.replacen(' ', "\t", 1),
            9 => format!(
                "{line}{}",
                self.pick(&[" # c", "#c", " #", "\t# c", " ", "\t", ":", " :", ","])
            ),
            10 => {
                let note = self.pick(LINES_OF_NOTE);
                let indent = " ".repeat(if self.random.random_bool(0.5) {
                    indentation(&line)
                } else {
                    0
                });
                lines.insert(at, format!("{indent}{note}"));
                return;
            }
            11 => {
                lines.remove(at);
                return;
            }
            12 => {
                lines.insert(at, line);
                return;
            }
            13 => {
                let other = self.random.random_range(0..lines.len());
                lines.swap(at, other);
                return;
            }
            14 => {
                let character = self.pick(CHARACTERS);
                let place = self.place(&line);
                let (before, after) = line.split_at(place);
                format!("{before}{character}{after}")
            }
            15 => {
                let place = self.place(&line);
                let (before, after) = line.split_at(place);
                before.to_owned()
                    + after
                        .get(after.chars().next().map_or(0, char::len_utf8)..)
                        .unwrap_or_default()
            }
            _ => {
                let (key, note) = (self.pick(SCALARS), self.pick(&["", " ", " x", " &a x"]));
                format!("{}{key}:{note}", " ".repeat(indentation(&line)))
            }
        };
        if let Some(line) = lines.get_mut(at) {
            *line = new;
        }
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.random).copied().unwrap_or_default()
    }

    /// Returns a random position between two characters of a line.
    fn place(&mut self, line: &str) -> usize {
        let places: Vec<usize> = line
            .char_indices()
            .map(|(at, _)| at)
            .chain([line.len()])
            .collect();
        places.choose(&mut self.random).copied().unwrap_or_default()
    }

    /// Encodes most texts in UTF-8 with line feeds, and some with other line breaks or in other encodings.
    fn encode(&mut self, text: String) -> Vec<u8> {
        match self.random.random_range(0..60) {
            0 => text.replace('\n', "\r\n").into_bytes(),
            1 => text.replace('\n', "\r").into_bytes(),
            2 => format!("\u{feff}{text}").into_bytes(),
            3 => utf16(&text, u16::to_le_bytes),
            4 => utf16(&text, u16::to_be_bytes),
            5 => {
                let mut bytes = text.into_bytes();
                let at = self.random.random_range(0..=bytes.len());
                bytes.insert(
                    at,
                    *[0xff, 0xc3, 0xe2, 0x80, 0xf8]
                        .choose(&mut self.random)
                        .unwrap_or(&0xff),
                );
                bytes
            }
            6 => format!("{text}{text}").into_bytes(),
            7 => format!("{text}---\n{text}").into_bytes(),
            8 => format!("{{\"a\": 1}}\n{text}").into_bytes(),
            _ => text.into_bytes(),
        }
    }
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns the text after the key of a line, or after its dash.
fn value(line: &str) -> &str {
    line.split_once(": ")
        .map_or_else(|| line.trim_start().trim_start_matches("- "), |(_, value)| value)
}

fn replace_value(line: &str, value: &str) -> String {
    let key = line
        .split_once(": ")
        .map(|(key, _)| key)
        .or_else(|| line.trim_end().strip_suffix(':'));
    let indent = " ".repeat(indentation(line));
    match key {
        Some(key) => format!("{key}: {value}"),
        None if line.trim_start().starts_with("- ") => format!("{indent}- {value}"),
        None => format!("{indent}{value}"),
    }
}
