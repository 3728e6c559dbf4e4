//! Settings of a control plane that differ between tests.

use std::ffi::OsString;

use crate::audit::Audit;

/// Growth of the heap in percent at which Go's garbage collector runs; Go's own default is 100.
const GROWTH: &str = "400";

/// Settings of a control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings<'a> {
    /// Requests that the API server logs.
    pub(crate) audit: Audit,
    /// Names of the only controllers that run; `None` for all.
    pub(crate) controllers: Option<&'a [&'a str]>,
    /// The components need less time and more memory.
    pub(crate) fast: bool,
}

impl Settings<'_> {
    /// Returns the controller manager's flags.
    pub(crate) fn controller_flags(&self) -> Vec<OsString> {
        let names = self.controllers.map(|names| names.join(","));
        names
            .map(|names| OsString::from(format!("--controllers={names}")))
            .into_iter()
            .collect()
    }

    /// Returns the environment of each component.
    pub(crate) fn environment(&self) -> Option<(&'static str, &'static str)> {
        self.fast.then_some(("GOGC", GROWTH))
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn all_controllers_run_unless_some_are_named() {
        assert!(Settings::default().controller_flags().is_empty());
        let settings = Settings {
            controllers: Some(&["a", "b"]),
            ..Settings::default()
        };
        assert_eq!(settings.controller_flags(), ["--controllers=a,b"]);
    }

    #[test]
    fn only_a_fast_control_plane_collects_garbage_seldom() {
        assert_eq!(Settings::default().environment(), None);
        let fast = Settings {
            fast: true,
            ..Settings::default()
        };
        assert_eq!(fast.environment(), Some(("GOGC", "400")));
    }
}
