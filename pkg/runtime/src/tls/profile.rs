//! Which protocol versions, cipher suites and key exchange groups TLS is spoken with.
//!
//! Names are those of Go, as upstream takes them. Not every name has something behind it here: TLS below 1.2, suites
//! without forward secrecy or in CBC mode, and post-quantum groups are not built in. Such names are known, and left out
//! with a warning: what is left is stricter than what was asked for, never laxer. Suites of TLS 1.3 cannot be chosen
//! between, as in Go; a list without one of TLS 1.2 leaves TLS 1.3 alone.

use std::{str::FromStr, sync::Arc};

use rustls::{
    ClientConfig, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, WantsVerifier,
    crypto::{CryptoProvider, SupportedKxGroup, ring},
    version::{TLS12, TLS13},
};

use super::TlsError;

const TLS13_ONLY: &[&SupportedProtocolVersion] = &[&TLS13];
const TLS12_AND_13: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// Suites of TLS 1.2 by Go's names; `None` where this build has none.
const SUITES: &[(&str, Option<SupportedCipherSuite>)] = &[
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        Some(ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        Some(ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        Some(ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        Some(ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
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
const ECDSA_CHACHA: SupportedCipherSuite = ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
const RSA_CHACHA: SupportedCipherSuite = ring::cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256;

/// Suites of TLS 1.3: all are always on.
const SUITES_13: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Groups by the names upstream takes.
const GROUPS: &[(&str, Option<&dyn SupportedKxGroup>)] = &[
    ("X25519", Some(ring::kx_group::X25519)),
    ("prime256v1", Some(ring::kx_group::SECP256R1)),
    ("secp256r1", Some(ring::kx_group::SECP256R1)),
    ("secp384r1", Some(ring::kx_group::SECP384R1)),
    ("secp521r1", None),
    ("X25519MLKEM768", None),
    ("SecP256r1MLKEM768", None),
    ("SecP384r1MLKEM1024", None),
];

/// Why a TLS flag was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProfileError {
    /// No such profile.
    #[error("unknown TLS profile: {0:?}: write modern, intermediate, old or custom")]
    Profile(String),
    /// No such version.
    #[error("unknown TLS version: {0:?}: write TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3")]
    Version(String),
    /// No such suite.
    #[error(
        "unknown cipher suite: {0:?}: write a name as Go has it, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    )]
    Suite(String),
    /// No such group.
    #[error("unknown curve: {0:?}: write one of X25519, prime256v1, secp384r1")]
    Group(String),
    /// None of the groups is built in.
    #[error(
        "none of the curves of --tls-custom-curves is built in: add one of X25519, prime256v1, secp384r1"
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
    /// Served as intermediate: what it would add is not built in.
    Old,
    /// What the other flags say.
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

/// `--tls-custom-version`: the lowest version spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MinVersion {
    /// Not built in: 1.2 is spoken.
    Tls10,
    /// Not built in: 1.2 is spoken.
    Tls11,
    /// 1.2 and 1.3.
    #[default]
    Tls12,
    /// 1.3.
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

/// One name of `--tls-custom-ciphers`, known to exist.
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

/// One name of `--tls-custom-curves`, known to exist.
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

/// What TLS is spoken with. Clones share it.
#[derive(Clone, Debug)]
pub struct Profile {
    versions: &'static [&'static SupportedProtocolVersion],
    provider: Arc<CryptoProvider>,
}

impl Default for Profile {
    /// Intermediate.
    fn default() -> Self {
        Self {
            versions: TLS12_AND_13,
            provider: Arc::new(ring::default_provider()),
        }
    }
}

impl Profile {
    /// One of the profiles that need nothing else; `custom` is that of no further flag.
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

    /// What `--tls-profile=custom` asks for; empty lists are everything.
    ///
    /// # Errors
    /// [`ProfileError::NoGroup`].
    pub fn custom(
        lowest: MinVersion,
        suites: &[SuiteName],
        groups: &[GroupName],
    ) -> Result<Self, ProfileError> {
        let mut provider = ring::default_provider();
        let mut versions = if lowest == MinVersion::Tls13 {
            TLS13_ONLY
        } else {
            TLS12_AND_13
        };
        if !suites.is_empty() {
            let chosen =
                |suite: &SupportedCipherSuite| suites.iter().any(|name| suite_of(*name) == Some(*suite));
            provider
                .cipher_suites
                .retain(|suite| suite.tls13().is_some() || chosen(suite));
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

    /// The beginning of a server's configuration.
    pub(super) fn server(&self) -> Result<rustls::ConfigBuilder<ServerConfig, WantsVerifier>, TlsError> {
        ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(self.versions)
            .map_err(TlsError::Provider)
    }

    /// The beginning of a client's configuration.
    pub(super) fn client(&self) -> Result<rustls::ConfigBuilder<ClientConfig, WantsVerifier>, TlsError> {
        ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(self.versions)
            .map_err(TlsError::Provider)
    }
}

/// What of a request is not built in, for a warning; empty when all is.
#[must_use]
pub fn left_out(
    name: ProfileName,
    lowest: MinVersion,
    suites: &[SuiteName],
    groups: &[GroupName],
) -> Vec<&'static str> {
    match name {
        ProfileName::Modern | ProfileName::Intermediate => Vec::new(),
        ProfileName::Old => vec!["TLSv1.0", "TLSv1.1", "suites in CBC mode"],
        ProfileName::Custom => {
            let version = (lowest < MinVersion::Tls12).then_some("versions below TLSv1.2");
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
    fn names_are_read_as_upstream_reads_them() {
        assert_eq!("MODERN".parse(), Ok(ProfileName::Modern));
        let error = "x".parse::<ProfileName>().unwrap_err().to_string();
        assert!(error.starts_with("unknown TLS profile: \"x\""), "{error}");
        assert!("TLSv1.4".parse::<MinVersion>().is_err());
        assert!("TLS_NOPE".parse::<SuiteName>().is_err());
        assert!("secp1".parse::<GroupName>().is_err());
    }

    #[test]
    fn every_suite_and_group_of_the_provider_has_a_name() {
        let provider = ring::default_provider();
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
    fn custom_narrows() {
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
    fn what_is_not_built_in_is_named() {
        let out = left_out(
            ProfileName::Custom,
            MinVersion::Tls10,
            &suites(&["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"]),
            &groups(&["X25519MLKEM768", "X25519"]),
        );
        assert_eq!(
            out,
            [
                "versions below TLSv1.2",
                "TLS_RSA_WITH_AES_128_CBC_SHA",
                "X25519MLKEM768"
            ]
        );
        let none = Profile::custom(MinVersion::Tls12, &[], &groups(&["secp521r1"]));
        assert_eq!(none.unwrap_err(), ProfileError::NoGroup);
    }
}
