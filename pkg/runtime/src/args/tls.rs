//! TLS flags.

use std::path::PathBuf;

use super::ArgsError;
use crate::tls::{GroupName, MinVersion, Profile, ProfileName, SuiteName, unsupported};

/// Serving certificate and TLS profile.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Serving certificate, PEM; reloaded when it changes. By default a self-managed certificate is issued and
    /// renewed.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Key of the serving certificate, PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// TLS profile, as server and towards catalogd: modern (1.3), intermediate (1.2 and 1.3), old (same as
    /// intermediate: nothing older is supported) or custom.
    #[arg(long, default_value = "intermediate", value_name = "PROFILE")]
    pub tls_profile: ProfileName,
    /// Minimum version of profile custom: TLSv1.0 to TLSv1.3; versions below TLSv1.2 are not supported.
    #[arg(long, default_value = "TLSv1.2", value_name = "VERSION")]
    pub tls_custom_version: MinVersion,
    /// Cipher suites of profile custom, by their Go names; empty for all. Suites of TLS 1.3 are always enabled.
    #[arg(long, value_delimiter = ',', value_name = "SUITES")]
    pub tls_custom_ciphers: Vec<SuiteName>,
    /// Curves of profile custom, in order of preference; empty for X25519MLKEM768, X25519, prime256v1,
    /// secp384r1.
    #[arg(long, value_delimiter = ',', value_name = "CURVES")]
    pub tls_custom_curves: Vec<GroupName>,
}

impl TlsArgs {
    /// Returns the files of the serving certificate, if given.
    ///
    /// # Errors
    /// [`ArgsError::IncompleteTlsPair`] if only one file is given.
    pub fn files(&self) -> Result<Option<(PathBuf, PathBuf)>, ArgsError> {
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        match (given(&self.tls_cert), given(&self.tls_key)) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            _ => Err(ArgsError::IncompleteTlsPair),
        }
    }

    /// Returns the TLS profile.
    ///
    /// # Errors
    /// [`ArgsError::Profile`] if a custom profile allows nothing.
    pub fn profile(&self) -> Result<Profile, ArgsError> {
        match self.tls_profile {
            ProfileName::Custom => Profile::custom(
                self.tls_custom_version,
                &self.tls_custom_ciphers,
                &self.tls_custom_curves,
            )
            .map_err(ArgsError::Profile),
            name => Ok(Profile::named(name)),
        }
    }

    /// Returns requested names that this build does not support, for a warning.
    #[must_use]
    pub fn unsupported(&self) -> Vec<&'static str> {
        unsupported(
            self.tls_profile,
            self.tls_custom_version,
            &self.tls_custom_ciphers,
            &self.tls_custom_curves,
        )
    }
}
