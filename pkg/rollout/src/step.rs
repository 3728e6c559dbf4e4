//! Distance between two versions.

use olm_version::BundleVersion;

/// Part of the version that an upgrade changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Neither version precedes the other.
    Same,
    /// Major and minor version stay, and the version rises.
    Patch,
    /// The major version stays, and the minor version rises.
    Minor,
    /// The major version rises, or one of the versions does not parse.
    Major,
    /// The version falls; `major` is true if the major version does.
    Back {
        /// True if the major version falls.
        major: bool,
    },
}

impl Step {
    /// Returns the step between two versions.
    #[must_use]
    pub fn between(from: &BundleVersion, to: &BundleVersion) -> Self {
        if from == to {
            return Self::Same;
        }
        let (Ok(from), Ok(to)) = (from.parsed(), to.parsed()) else {
            // An unreadable version may be anything: the strictest rule applies.
            return Self::Major;
        };
        let (a, b) = (&from.version, &to.version);
        match from.cmp_precedence(to) {
            std::cmp::Ordering::Equal => Self::Same,
            std::cmp::Ordering::Greater => Self::Back {
                major: a.major != b.major,
            },
            std::cmp::Ordering::Less if a.major != b.major => Self::Major,
            std::cmp::Ordering::Less if a.minor != b.minor => Self::Minor,
            std::cmp::Ordering::Less => Self::Patch,
        }
    }

    /// Returns true if the major version changes.
    #[must_use]
    pub fn is_major(self) -> bool {
        matches!(self, Self::Major | Self::Back { major: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_between_versions() {
        let step = |from: &str, to: &str| Step::between(&from.into(), &to.into());
        assert_eq!(step("1.2.3", "1.2.3"), Step::Same);
        assert_eq!(step("1.2.3", "1.2.4"), Step::Patch);
        assert_eq!(step("1.2.3-rc1", "1.2.3"), Step::Patch);
        assert_eq!(step("1.2.3+1", "1.2.3+2"), Step::Patch, "a release");
        assert_eq!(step("1.2.3", "1.3.0"), Step::Minor);
        assert_eq!(step("1.2.3", "2.0.0"), Step::Major);
        assert_eq!(step("1.2.3", "1.2.2"), Step::Back { major: false });
        assert_eq!(step("2.0.0", "1.9.9"), Step::Back { major: true });
        assert_eq!(step("v1", "1.0.0"), Step::Major, "unreadable");
        assert_eq!(step("v1", "v1"), Step::Same);
        assert!(step("2.0.0", "1.0.0").is_major() && !step("1.1.0", "1.0.0").is_major());
    }
}
