//! Minor versions: a major and a minor number, without patch and pre-release.

use semver::Version;
use std::fmt;
use std::str::FromStr;

/// `<major>.<minor>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinorVersion {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
}

/// The text is not `<major>.<minor>` in decimal digits without leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected <major>.<minor>")]
pub struct MinorVersionError;

impl FromStr for MinorVersion {
    type Err = MinorVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once('.').ok_or(MinorVersionError)?;
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
        })
    }
}

fn number(text: &str) -> Result<u64, MinorVersionError> {
    let is_decimal =
        text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_decimal {
        return Err(MinorVersionError);
    }
    text.parse().map_err(|_| MinorVersionError)
}

impl From<&Version> for MinorVersion {
    fn from(version: &Version) -> Self {
        Self {
            major: version.major,
            minor: version.minor,
        }
    }
}

impl fmt::Display for MinorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_two_numbers_are_read() {
        for text in ["0.0", "4.18", "18446744073709551615.10"] {
            assert_eq!(text.parse::<MinorVersion>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "4",
            "4.",
            ".18",
            "4.18.1",
            "04.1",
            "4.01",
            "v4.18",
            "+4.1",
            " 4.1",
            "18446744073709551616.0",
        ] {
            assert_eq!(text.parse::<MinorVersion>(), Err(MinorVersionError), "{text}");
        }
        let version = crate::parse_version("4.18.3-rc.1").unwrap();
        assert_eq!(MinorVersion::from(&version).to_string(), "4.18");
        let minor = |text: &str| text.parse::<MinorVersion>().unwrap();
        assert!(minor("4.9") < minor("4.10") && minor("4.10") < minor("5.0"));
    }
}
