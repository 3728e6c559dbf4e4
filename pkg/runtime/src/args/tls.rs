//! The flags about TLS.

use std::path::PathBuf;

use super::ArgsError;
use crate::tls::{GroupName, MinVersion, Profile, ProfileName, SuiteName, left_out};

/// What is served with, and how TLS is spoken.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Serving certificate, PEM; read again when it changes. Without it an own one is made and renewed.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Key of the serving certificate, PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// How TLS is spoken, as server and to catalogd: modern (1.3), intermediate (1.2 and 1.3), old (as intermediate:
    /// nothing older is built in) or custom.
    #[arg(long, default_value = "intermediate", value_name = "PROFILE")]
    pub tls_profile: ProfileName,
    /// Lowest version of profile custom: TLSv1.0 to TLSv1.3; below TLSv1.2 nothing is built in.
    #[arg(long, default_value = "TLSv1.2", value_name = "VERSION")]
    pub tls_custom_version: MinVersion,
    /// Suites of profile custom, by their Go names; empty for all. Those of TLS 1.3 are always on.
    #[arg(long, value_delimiter = ',', value_name = "SUITES")]
    pub tls_custom_ciphers: Vec<SuiteName>,
    /// Curves of profile custom, in order of preference; empty for all: X25519, prime256v1, secp384r1.
    #[arg(long, value_delimiter = ',', value_name = "CURVES")]
    pub tls_custom_curves: Vec<GroupName>,
}

impl TlsArgs {
    /// The serving certificate's files, when both are given.
    ///
    /// # Errors
    /// [`ArgsError::HalfATlsPair`] when only one is.
    pub fn files(&self) -> Result<Option<(PathBuf, PathBuf)>, ArgsError> {
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        match (given(&self.tls_cert), given(&self.tls_key)) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            _ => Err(ArgsError::HalfATlsPair),
        }
    }

    /// How TLS is spoken.
    ///
    /// # Errors
    /// [`ArgsError::Profile`]: a custom profile that leaves nothing.
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

    /// What was asked for and is not built in; to be warned of.
    #[must_use]
    pub fn left_out(&self) -> Vec<&'static str> {
        left_out(
            self.tls_profile,
            self.tls_custom_version,
            &self.tls_custom_ciphers,
            &self.tls_custom_curves,
        )
    }
}
