//! Ignore rules of a catalog's files: `.indexignore`.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::Path;

/// Maximum size of an `.indexignore`, in bytes.
const MAX_TEXT: usize = 1024 * 1024;
/// Maximum number of patterns in all `.indexignore` files of a catalog.
const MAX_PATTERNS: usize = 10_000;

/// Patterns of all `.indexignore` files of a catalog. Works on text and reads no files.
#[derive(Debug, Clone, Default)]
pub struct IndexIgnore {
    /// Rules of deeper folders come later, so that they take precedence.
    rules: Vec<Rules>,
}

#[derive(Debug, Clone)]
struct Rules {
    /// Folder to which the patterns apply: empty, or ending in a slash.
    folder: String,
    patterns: Gitignore,
}

/// Reason why an `.indexignore` cannot be used. Terminal: only other content can succeed.
#[derive(Debug, thiserror::Error)]
pub enum IgnoreError {
    /// The file is longer than 1 MiB.
    #[error("{folder}.indexignore is longer than {MAX_TEXT} bytes")]
    TooLong {
        /// The folder that holds it.
        folder: String,
    },
    /// The file has more than ten thousand patterns.
    #[error("the catalog has more than {MAX_PATTERNS} patterns in its .indexignore files")]
    TooMany,
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
    /// Parses (folder, text of its `.indexignore`) pairs. Folders are relative to the root of the catalog, with `/`
    /// between names; the root is `""` or `"."`.
    ///
    /// # Errors
    /// [`IgnoreError`] if a file exceeds a limit or a pattern cannot be parsed.
    pub fn new<F, T>(files: impl IntoIterator<Item = (F, T)>) -> Result<Self, IgnoreError>
    where
        F: AsRef<str>,
        T: AsRef<str>,
    {
        let mut count = 0;
        let mut rules = Vec::new();
        for (folder, text) in files {
            let folder = folder.as_ref().trim_matches('/');
            let folder = if folder.is_empty() || folder == "." {
                String::new()
            } else {
                format!("{folder}/")
            };
            let text = text.as_ref();
            if text.len() > MAX_TEXT {
                return Err(IgnoreError::TooLong { folder });
            }
            // The root "" keeps every path relative to the folder itself.
            let mut builder = GitignoreBuilder::new("");
            for line in text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
            {
                count += 1;
                if count > MAX_PATTERNS {
                    return Err(IgnoreError::TooMany);
                }
                builder
                    .add_line(None, line)
                    .map_err(|source| IgnoreError::Pattern {
                        folder: folder.clone(),
                        pattern: line.to_owned(),
                        source,
                    })?;
            }
            let patterns = builder.build().map_err(|source| IgnoreError::Pattern {
                folder: folder.clone(),
                pattern: String::new(),
                source,
            })?;
            rules.push(Rules { folder, patterns });
        }
        rules.sort_by(|a, b| {
            (a.folder.matches('/').count(), &a.folder).cmp(&(b.folder.matches('/').count(), &b.folder))
        });
        Ok(Self { rules })
    }

    /// Returns true if the patterns exclude the file `path`, relative to the root of the catalog with `/` between names. The last
    /// matching pattern decides; a pattern that matches a folder covers everything below it. Empty names and `.` in the path do
    /// not count.
    pub fn is_ignored(&self, path: &str) -> bool {
        // The underlying matcher panics on a remaining leading slash.
        let names: Vec<&str> = path
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .collect();
        let path = names.join("/");
        self.rules
            .iter()
            .rev()
            .find_map(|rules| rules.verdict(path.strip_prefix(rules.folder.as_str())?))
            .unwrap_or(false)
    }
}

impl Rules {
    fn verdict(&self, path: &str) -> Option<bool> {
        match self.patterns.matched_path_or_any_parents(Path::new(path), false) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}
