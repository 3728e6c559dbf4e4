//! Ignore rules of a catalog's files: `.indexignore`.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::borrow::Cow;
use std::path::Path;

/// Maximum size of all `.indexignore` files of a catalog, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum number of `.indexignore` files of a catalog. Each takes memory of its own, however few patterns it has.
const MAX_FILES: usize = 1000;
/// Maximum number of patterns in all `.indexignore` files of a catalog.
const MAX_PATTERNS: usize = 10_000;
/// Maximum number of patterns with wildcards in one file. The memory of a matcher grows with their number times their length.
const MAX_WILDCARDS: usize = 100;
/// Maximum length of the patterns with wildcards in one file, in bytes.
const MAX_WILDCARD_BYTES: usize = 4096;
/// Maximum number of steps of matching: bytes of paths, those of parents included, times bytes of patterns.
const MAX_STEPS: u64 = 10_000_000_000;

/// Patterns of all `.indexignore` files of a catalog. Works on text and reads no files.
#[derive(Debug, Clone, Default)]
pub struct IndexIgnore {
    /// Rules of deeper folders come later, so that they take precedence.
    rules: Vec<Rules>,
}

/// Text of an `.indexignore`. A matcher takes megabytes for hostile patterns, so that only one exists at a time.
#[derive(Debug, Clone)]
struct Rules {
    /// Folder to which the patterns apply: empty, or ending in a slash.
    folder: String,
    text: String,
}

/// Reason why an `.indexignore` cannot be used. Terminal: only other content can succeed.
#[derive(Debug, thiserror::Error)]
pub enum IgnoreError {
    /// The files have more than 1 MiB.
    #[error("the .indexignore files of the catalog have more than {MAX_BYTES} bytes together")]
    TooLong,
    /// There are too many files.
    #[error("the catalog has more than {MAX_FILES} .indexignore files")]
    TooManyFiles,
    /// The files have more than ten thousand patterns.
    #[error("the catalog has more than {MAX_PATTERNS} patterns in its .indexignore files")]
    TooMany,
    /// One file has too many patterns with wildcards, or too long ones.
    #[error(
        "{folder}.indexignore has more than {MAX_WILDCARDS} patterns with wildcards, or more than {MAX_WILDCARD_BYTES} bytes \
         in them"
    )]
    TooManyWildcards {
        /// The folder that holds the file.
        folder: String,
    },
    /// Matching the patterns would take too long.
    #[error(
        "the catalog has too many files for the patterns in its .indexignore files: use fewer or shorter patterns"
    )]
    TooSlow,
    /// A pattern cannot be parsed.
    #[error("{folder}.indexignore: pattern {pattern:?} is malformed")]
    Pattern {
        /// The folder that holds the file.
        folder: String,
        /// The pattern.
        pattern: String,
        /// Syntax error of the pattern.
        source: ignore::Error,
    },
}

impl IndexIgnore {
    /// Checks the number of files and of their bytes together, for readers that hold the texts.
    ///
    /// # Errors
    /// [`IgnoreError`] if a limit is exceeded.
    pub fn check(files: usize, bytes: u64) -> Result<(), IgnoreError> {
        if files > MAX_FILES {
            Err(IgnoreError::TooManyFiles)
        } else if bytes > MAX_BYTES {
            Err(IgnoreError::TooLong)
        } else {
            Ok(())
        }
    }

    /// Takes (folder, text of its `.indexignore`) pairs. Folders are relative to the root of the catalog, with `/`
    /// between names; the root is `""` or `"."`.
    ///
    /// # Errors
    /// [`IgnoreError`] if the files exceed a limit.
    pub fn new<F, T>(files: impl IntoIterator<Item = (F, T)>) -> Result<Self, IgnoreError>
    where
        F: AsRef<str>,
        T: Into<String>,
    {
        let mut count = 0;
        let mut bytes = 0_u64;
        let mut rules = Vec::new();
        for (folder, text) in files {
            let text = text.into();
            bytes = bytes.saturating_add(text.len() as u64);
            Self::check(rules.len() + 1, bytes)?;
            let folder = folder.as_ref().trim_matches('/');
            let folder = if folder.is_empty() || folder == "." {
                String::new()
            } else {
                format!("{folder}/")
            };
            let own = Rules { folder, text };
            count += own.lines().count();
            if count > MAX_PATTERNS {
                return Err(IgnoreError::TooMany);
            }
            own.check_wildcards()?;
            rules.push(own);
        }
        rules.sort_by(|a, b| {
            (a.folder.matches('/').count(), &a.folder).cmp(&(b.folder.matches('/').count(), &b.folder))
        });
        Ok(Self { rules })
    }

    /// Removes the files that the patterns exclude. Paths are relative to the root of the catalog with `/` between names. The last
    /// matching pattern decides; a pattern that matches a folder covers everything below it. Empty names and `.` in a path do
    /// not count.
    ///
    /// # Errors
    /// [`IgnoreError`] if a pattern cannot be parsed, or if matching would take too long.
    pub fn retain(&self, paths: &mut Vec<String>) -> Result<(), IgnoreError> {
        let mut ignored = vec![false; paths.len()];
        let mut steps = 0_u64;
        for rules in &self.rules {
            let patterns = rules.compile()?;
            let weight: usize = rules.lines().map(str::len).sum();
            for (path, ignored) in paths.iter().zip(&mut ignored) {
                let path = clean(path);
                let Some(path) = path.strip_prefix(rules.folder.as_str()) else {
                    continue;
                };
                let parents = path.matches('/').count() + 1;
                let cost = path.len().saturating_mul(parents).saturating_mul(weight);
                steps = steps.saturating_add(cost as u64);
                if steps > MAX_STEPS {
                    return Err(IgnoreError::TooSlow);
                }
                match patterns.matched_path_or_any_parents(Path::new(path), false) {
                    Match::None => {}
                    Match::Ignore(_) => *ignored = true,
                    Match::Whitelist(_) => *ignored = false,
                }
            }
        }
        let mut ignored = ignored.into_iter();
        paths.retain(|_| !ignored.next().unwrap_or_default());
        Ok(())
    }
}

/// Returns the path without empty names and `.`. The matcher panics on a leading slash.
fn clean(path: &str) -> Cow<'_, str> {
    let counts = |name: &&str| !matches!(*name, "" | ".");
    if path.split('/').all(|name| counts(&name)) {
        return Cow::Borrowed(path);
    }
    let names: Vec<&str> = path.split('/').filter(counts).collect();
    Cow::Owned(names.join("/"))
}

impl Rules {
    /// Returns the lines that are patterns.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    }

    fn check_wildcards(&self) -> Result<(), IgnoreError> {
        let (mut count, mut bytes) = (0, 0);
        for line in self.lines().filter(|line| line.contains(['*', '?', '[', '{'])) {
            count += 1;
            bytes += line.len();
        }
        if count > MAX_WILDCARDS || bytes > MAX_WILDCARD_BYTES {
            return Err(IgnoreError::TooManyWildcards {
                folder: self.folder.clone(),
            });
        }
        Ok(())
    }

    fn compile(&self) -> Result<Gitignore, IgnoreError> {
        let malformed = |pattern: &str, source| IgnoreError::Pattern {
            folder: self.folder.clone(),
            pattern: pattern.to_owned(),
            source,
        };
        // The root "" keeps every path relative to the folder itself.
        let mut builder = GitignoreBuilder::new("");
        for line in self.lines() {
            builder
                .add_line(None, line)
                .map_err(|source| malformed(line, source))?;
        }
        builder.build().map_err(|source| malformed("", source))
    }
}
