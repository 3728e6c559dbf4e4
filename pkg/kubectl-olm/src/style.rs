//! Style of text for people: colours and the width of the terminal. `NO_COLOR` turns colours off.

use std::io::{self, IsTerminal as _};

use olm_status::overview::Mood;

use crate::cli::Format;

/// Meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Text without a special meaning.
    Plain,
    /// Headings.
    Bold,
    /// Good, chosen.
    Good,
    /// Deprecated, doubtful.
    Warn,
    /// Wrong, ruled out.
    Bad,
    /// Less important.
    Dim,
}

impl From<Mood> for Paint {
    fn from(mood: Mood) -> Self {
        match mood {
            Mood::Good => Self::Good,
            Mood::Plain => Self::Plain,
            Mood::Waiting => Self::Warn,
            Mood::Bad => Self::Bad,
        }
    }
}

/// Minimum width of a terminal for wrapping, in characters.
const NARROWEST: usize = 40;

/// Style of text: colours and maximum width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colours: bool,
    /// Width of a line in characters; none for a pipe or a file.
    width: Option<usize>,
}

impl Style {
    /// Returns the style of standard output. Only tables on a terminal have colours and a width.
    pub(crate) fn of_stdout(format: Format) -> Self {
        let terminal = matches!(format, Format::Table | Format::Wide) && io::stdout().is_terminal();
        // https://no-color.org: set and not empty.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colours: terminal && !refused && !dumb,
            width: terminal.then(columns).flatten(),
        }
    }

    /// Returns a style without colours and width, as for a pipe.
    pub(crate) fn plain() -> Self {
        Self {
            colours: false,
            width: None,
        }
    }

    /// Returns a style without colours for a terminal of this width.
    #[cfg(test)]
    pub(crate) fn of_width(width: usize) -> Self {
        Self {
            colours: false,
            width: Some(width),
        }
    }

    /// Returns the width of a line in characters; none if lines may have any length.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    /// Returns `limit` on a terminal, and no limit for a pipe or a file.
    pub(crate) fn at_most(self, limit: usize) -> usize {
        self.width.map_or(usize::MAX, |_| limit)
    }

    /// Returns `text` in the colour of `paint`.
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

/// Returns the width of the terminal on standard output; none if it is unknown or too narrow.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= NARROWEST)
}
