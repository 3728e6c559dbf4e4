//! The format of answers.

use clap::ValueEnum;

/// Formats of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Table,
    /// Text with more columns; get only.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Markdown, for a comment of at most 64 kB; plans only.
    Markdown,
    /// HTML page; plans only.
    Html,
}

impl Format {
    /// Returns the format that a command line asks for, even if the command line is otherwise invalid.
    pub(crate) fn asked(args: impl Iterator<Item = String>) -> Self {
        let args: Vec<String> = args.take_while(|arg| arg != "--").collect();
        let value = |(at, arg): (usize, &String)| match arg.as_str() {
            "-o" | "--output" => args.get(at + 1).cloned(),
            arg => {
                let value = arg.strip_prefix("--output=").or_else(|| arg.strip_prefix("-o"))?;
                Some(value.trim_start_matches('=').to_owned())
            }
        };
        let found = args.iter().enumerate().filter_map(value).next_back();
        found
            .and_then(|value| Self::from_str(&value, false).ok())
            .unwrap_or(Self::Table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_a_wrong_command_line() {
        let asked = |line: &str| Format::asked(line.split(' ').map(str::to_owned));
        for line in [
            "x -o json",
            "x -ojson",
            "x -o=json",
            "x --output json",
            "x --output=json -x",
        ] {
            assert_eq!(asked(line), Format::Json, "{line}");
        }
        assert_eq!(asked("x -o yaml y"), Format::Yaml);
        for line in ["x", "x -o", "x -o xml", "x -- -o json", "x --one"] {
            assert_eq!(asked(line), Format::Table, "{line}");
        }
    }
}
