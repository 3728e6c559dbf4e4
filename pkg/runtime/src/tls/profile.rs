//! TLS protocol versions, cipher suites and key exchange groups.
//!
//! Names are those of Go, as upstream accepts them. This build does not support all of them: TLS below 1.2, suites
//! without forward secrecy or in CBC mode, secp521r1 and `SecP384r1MLKEM1024` are missing. Such names are accepted and ignored
//! with a warning: the result is stricter than requested, never laxer. Suites of TLS 1.3 are not configurable, as in
//! Go; a list without suites of TLS 1.2 leaves only TLS 1.3.

use std::{str::FromStr, sync::Arc};

use rustls::{
    ClientConfig, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, WantsVerifier,
    crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs},
    version::{TLS12, TLS13},
};

use super::TlsError;

const TLS13_ONLY: &[&SupportedProtocolVersion] = &[&TLS13];
const TLS12_AND_13: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// Cipher suites of TLS 1.2 by Go's names; `None` if this build does not support them.
const SUITES: &[(&str, Option<SupportedCipherSuite>)] = &[
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        Some(aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        Some(aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        Some(aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        Some(aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        Some(ECDSA_CHACHA),
    ),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", Some(ECDSA_CHACHA)),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Some(RSA_CHACHA)),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", Some(RSA_CHACHA)),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", None),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", None),
    ("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", None),
    ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_ECDHE_RSA_WITH_RC4_128_SHA", None),
    ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", None),
    ("TLS_RSA_WITH_AES_128_CBC_SHA", None),
    ("TLS_RSA_WITH_AES_128_CBC_SHA256", None),
    ("TLS_RSA_WITH_AES_128_GCM_SHA256", None),
    ("TLS_RSA_WITH_AES_256_CBC_SHA", None),
    ("TLS_RSA_WITH_AES_256_GCM_SHA384", None),
    ("TLS_RSA_WITH_RC4_128_SHA", None),
];
const ECDSA_CHACHA: SupportedCipherSuite =
    aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
const RSA_CHACHA: SupportedCipherSuite = aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256;

/// Cipher suites of TLS 1.3, always enabled.
const SUITES_13: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Key exchange groups by upstream's names.
const GROUPS: &[(&str, Option<&dyn SupportedKxGroup>)] = &[
    ("X25519", Some(aws_lc_rs::kx_group::X25519)),
    ("prime256v1", Some(aws_lc_rs::kx_group::SECP256R1)),
    ("secp256r1", Some(aws_lc_rs::kx_group::SECP256R1)),
    ("secp384r1", Some(aws_lc_rs::kx_group::SECP384R1)),
    ("secp521r1", None),
    ("X25519MLKEM768", Some(aws_lc_rs::kx_group::X25519MLKEM768)),
    ("SecP256r1MLKEM768", Some(aws_lc_rs::kx_group::SECP256R1MLKEM768)),
    ("SecP384r1MLKEM1024", None),
];

/// Error for an invalid TLS flag.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProfileError {
    /// The profile is unknown.
    #[error("unknown TLS profile: {0:?}: write modern, intermediate, old or custom")]
    Profile(String),
    /// The version is unknown.
    #[error("unknown TLS version: {0:?}: write TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3")]
    Version(String),
    /// The suite is unknown.
    #[error(
        "unknown cipher suite: {0:?}: write a name as Go has it, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    )]
    Suite(String),
    /// The group is unknown.
    #[error("unknown curve: {0:?}: write one of X25519MLKEM768, X25519, prime256v1, secp384r1")]
    Group(String),
    /// This build supports none of the groups.
    #[error(
        "none of the curves of --tls-custom-curves is built in: add one of X25519MLKEM768, X25519, prime256v1, secp384r1"
    )]
    NoGroup,
}

/// `--tls-profile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileName {
    /// TLS 1.3 only.
    Modern,
    /// TLS 1.2 and 1.3.
    #[default]
    Intermediate,
    /// The same as intermediate: this build does not support the older versions and suites.
    Old,
    /// Values of the other flags.
    Custom,
}

impl FromStr for ProfileName {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "modern" => Ok(Self::Modern),
            "intermediate" => Ok(Self::Intermediate),
            "old" => Ok(Self::Old),
            "custom" => Ok(Self::Custom),
            _ => Err(ProfileError::Profile(text.to_owned())),
        }
    }
}

/// Value of `--tls-custom-version`, the minimum version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MinVersion {
    /// Not supported; the minimum is 1.2.
    Tls10,
    /// Not supported; the minimum is 1.2.
    Tls11,
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl FromStr for MinVersion {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "TLSv1.0" => Ok(Self::Tls10),
            "TLSv1.1" => Ok(Self::Tls11),
            "TLSv1.2" => Ok(Self::Tls12),
            "TLSv1.3" => Ok(Self::Tls13),
            _ => Err(ProfileError::Version(text.to_owned())),
        }
    }
}

/// A known name of `--tls-custom-ciphers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuiteName(&'static str);

impl FromStr for SuiteName {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut known = SUITES.iter().map(|(name, _)| *name).chain(SUITES_13);
        known
            .find(|name| *name == text)
            .map(Self)
            .ok_or_else(|| ProfileError::Suite(text.to_owned()))
    }
}

/// A known name of `--tls-custom-curves`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupName(&'static str);

impl FromStr for GroupName {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut known = GROUPS.iter().map(|(name, _)| *name);
        known
            .find(|name| *name == text)
            .map(Self)
            .ok_or_else(|| ProfileError::Group(text.to_owned()))
    }
}

/// Versions, suites and groups of TLS. Clones share them.
#[derive(Clone, Debug)]
pub struct Profile {
    versions: &'static [&'static SupportedProtocolVersion],
    provider: Arc<CryptoProvider>,
}

impl Default for Profile {
    /// Returns the intermediate profile.
    fn default() -> Self {
        Self {
            versions: TLS12_AND_13,
            provider: Arc::new(aws_lc_rs::default_provider()),
        }
    }
}

impl Profile {
    /// Returns a predefined profile; `custom` without further flags is intermediate.
    #[must_use]
    pub fn named(name: ProfileName) -> Self {
        let versions = match name {
            ProfileName::Modern => TLS13_ONLY,
            ProfileName::Intermediate | ProfileName::Old | ProfileName::Custom => TLS12_AND_13,
        };
        Self {
            versions,
            ..Self::default()
        }
    }

    /// Returns the profile of `--tls-profile=custom`; empty lists mean everything.
    ///
    /// # Errors
    /// [`ProfileError::NoGroup`].
    pub fn custom(
        min_version: MinVersion,
        suites: &[SuiteName],
        groups: &[GroupName],
    ) -> Result<Self, ProfileError> {
        let mut provider = aws_lc_rs::default_provider();
        let mut versions = if min_version == MinVersion::Tls13 {
            TLS13_ONLY
        } else {
            TLS12_AND_13
        };
        if !suites.is_empty() {
            let is_chosen =
                |suite: &SupportedCipherSuite| suites.iter().any(|name| suite_of(*name) == Some(*suite));
            provider
                .cipher_suites
                .retain(|suite| suite.tls13().is_some() || is_chosen(suite));
            if provider.cipher_suites.iter().all(|suite| suite.tls13().is_some()) {
                versions = TLS13_ONLY;
            }
        }
        if !groups.is_empty() {
            provider.kx_groups = groups.iter().filter_map(|name| group_of(*name)).collect();
            if provider.kx_groups.is_empty() {
                return Err(ProfileError::NoGroup);
            }
        }
        Ok(Self {
            versions,
            provider: Arc::new(provider),
        })
    }

    /// Starts a server configuration.
    pub(super) fn server(&self) -> Result<rustls::ConfigBuilder<ServerConfig, WantsVerifier>, TlsError> {
        ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(self.versions)
            .map_err(TlsError::Provider)
    }

    /// Starts a client configuration.
    pub(super) fn client(&self) -> Result<rustls::ConfigBuilder<ClientConfig, WantsVerifier>, TlsError> {
        ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(self.versions)
            .map_err(TlsError::Provider)
    }
}

/// Returns requested names that this build does not support, for a warning.
#[must_use]
pub fn unsupported(
    name: ProfileName,
    min_version: MinVersion,
    suites: &[SuiteName],
    groups: &[GroupName],
) -> Vec<&'static str> {
    match name {
        ProfileName::Modern | ProfileName::Intermediate => Vec::new(),
        ProfileName::Old => vec!["TLSv1.0", "TLSv1.1", "suites in CBC mode"],
        ProfileName::Custom => {
            let version = (min_version < MinVersion::Tls12).then_some("versions below TLSv1.2");
            let suites = suites
                .iter()
                .filter(|name| suite_of(**name).is_none() && !SUITES_13.contains(&name.0))
                .map(|name| name.0);
            let groups = groups
                .iter()
                .filter(|name| group_of(**name).is_none())
                .map(|name| name.0);
            version.into_iter().chain(suites).chain(groups).collect()
        }
    }
}

fn suite_of(name: SuiteName) -> Option<SupportedCipherSuite> {
    SUITES.iter().find(|(known, _)| *known == name.0)?.1
}

fn group_of(name: GroupName) -> Option<&'static dyn SupportedKxGroup> {
    GROUPS.iter().find(|(known, _)| *known == name.0)?.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(names: &[&str]) -> Vec<SuiteName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn groups(names: &[&str]) -> Vec<GroupName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn speaks_12(profile: &Profile) -> bool {
        profile.versions.len() == 2
    }

    #[test]
    fn names_are_parsed_as_upstream_does() {
        assert_eq!("MODERN".parse(), Ok(ProfileName::Modern));
        let error = "x".parse::<ProfileName>().unwrap_err().to_string();
        assert!(error.starts_with("unknown TLS profile: \"x\""), "{error}");
        assert!("TLSv1.4".parse::<MinVersion>().is_err());
        assert!("TLS_NOPE".parse::<SuiteName>().is_err());
        assert!("secp1".parse::<GroupName>().is_err());
    }

    #[test]
    fn every_suite_and_group_of_the_provider_has_a_name() {
        let provider = aws_lc_rs::default_provider();
        for suite in provider
            .cipher_suites
            .iter()
            .filter(|suite| suite.tls13().is_none())
        {
            assert!(
                SUITES.iter().any(|(_, known)| *known == Some(*suite)),
                "{suite:?}"
            );
        }
        for group in provider.kx_groups {
            let mut named = GROUPS.iter().filter_map(|(_, known)| *known);
            assert!(named.any(|known| known.name() == group.name()));
        }
    }

    #[test]
    fn the_help_lists_the_default_groups() {
        use clap::Args as _;
        let profile = Profile::custom(MinVersion::Tls12, &[], &[]).unwrap();
        let name = |group: &&dyn SupportedKxGroup| {
            let is_same = |(_, known): &&(&str, Option<&dyn SupportedKxGroup>)| {
                known.is_some_and(|known| known.name() == group.name())
            };
            GROUPS.iter().find(is_same).unwrap().0
        };
        let names: Vec<&str> = profile.provider.kx_groups.iter().map(name).collect();
        let command = crate::args::TlsArgs::augment_args(clap::Command::new("test"));
        let mut flags = command.get_arguments();
        let flag = flags.find(|flag| flag.get_id() == "tls_custom_curves").unwrap();
        let help = flag.get_help().unwrap().to_string();
        let expected = format!("empty for {}", names.join(", "));
        assert!(help.contains(&expected), "{help}: {expected}");
    }

    #[test]
    fn custom_profiles_narrow() {
        let one = suites(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
        let profile = Profile::custom(MinVersion::Tls12, &one, &groups(&["secp384r1"])).unwrap();
        assert!(speaks_12(&profile));
        assert_eq!(
            profile.provider.cipher_suites.len(),
            4,
            "one of 1.2 and all of 1.3"
        );
        assert_eq!(profile.provider.kx_groups.len(), 1);
        assert!(!speaks_12(
            &Profile::custom(MinVersion::Tls13, &one, &[]).unwrap()
        ));
        let only_13 = suites(&["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"]);
        assert!(!speaks_12(
            &Profile::custom(MinVersion::Tls10, &only_13, &[]).unwrap()
        ));
        assert!(!speaks_12(&Profile::named(ProfileName::Modern)));
        assert!(speaks_12(&Profile::named(ProfileName::Old)));
    }

    #[test]
    fn unsupported_names_are_returned() {
        let out = unsupported(
            ProfileName::Custom,
            MinVersion::Tls10,
            &suites(&["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"]),
            &groups(&["SecP384r1MLKEM1024", "X25519MLKEM768"]),
        );
        assert_eq!(
            out,
            [
                "versions below TLSv1.2",
                "TLS_RSA_WITH_AES_128_CBC_SHA",
                "SecP384r1MLKEM1024"
            ]
        );
        let none = Profile::custom(MinVersion::Tls12, &[], &groups(&["secp521r1"]));
        assert_eq!(none.unwrap_err(), ProfileError::NoGroup);
    }
}
