//! Colours: on a terminal, unless `NO_COLOR` says otherwise.

use std::io::{self, IsTerminal as _};

use crate::cli::Format;

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Nothing special.
    Plain,
    /// Headings.
    Bold,
    /// Good, chosen.
    Good,
    /// Deprecated, doubtful.
    Warn,
    /// Wrong, ruled out.
    Bad,
    /// Beside the point.
    Dim,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    /// For standard output: colours only for tables on a terminal that has them.
    pub(crate) fn of_stdout(format: Format) -> Self {
        // https://no-color.org: set and not empty.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colours: format == Format::Table && !refused && !dumb && io::stdout().is_terminal(),
        }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { colours: false }
    }

    /// `text` in the colour of `paint`.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Plain => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Good => "32",
            Paint::Warn => "33",
            Paint::Bad => "31",
            Paint::Dim => "2",
        };
        if self.colours && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
