//! TLS parameters that a server with a profile negotiates with a client over a real socket.
#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use axum::{Router, routing::get};
use common::Server;
use olm_runtime::{
    serve::Limits,
    tls::{MinVersion, Profile, ProfileName},
};
use rustls::{
    ProtocolVersion, SupportedCipherSuite,
    crypto::{CryptoProvider, aws_lc_rs},
};

fn start(profile: Profile) -> Server {
    let router = Router::new().route("/", get(async || "here"));
    Server::start(profile, Limits::default(), router)
}

/// Returns version, suite and protocol that the server negotiates with a client of one version and these suites.
async fn negotiate(
    server: &Server,
    version: &'static rustls::SupportedProtocolVersion,
    suites: Option<SupportedCipherSuite>,
    protocols: &[&str],
) -> Result<(ProtocolVersion, SupportedCipherSuite, Option<Vec<u8>>), std::io::Error> {
    let mut provider: CryptoProvider = aws_lc_rs::default_provider();
    if let Some(suite) = suites {
        provider.cipher_suites = vec![suite];
    }
    let stream = server.connect(provider, version, protocols).await?;
    let (_, session) = stream.get_ref();
    Ok((
        session.protocol_version().unwrap(),
        session.negotiated_cipher_suite().unwrap(),
        session.alpn_protocol().map(<[u8]>::to_vec),
    ))
}

const TLS12: &rustls::SupportedProtocolVersion = &rustls::version::TLS12;
const TLS13: &rustls::SupportedProtocolVersion = &rustls::version::TLS13;

#[tokio::test]
async fn intermediate_speaks_both_and_prefers_http_2() {
    let server = start(Profile::default());
    let (version, _, protocol) = negotiate(&server, TLS12, None, &["http/1.1"]).await.unwrap();
    assert_eq!(version, ProtocolVersion::TLSv1_2);
    assert_eq!(protocol.as_deref(), Some(&b"http/1.1"[..]));
    let (version, _, protocol) = negotiate(&server, TLS13, None, &["http/1.1", "h2"])
        .await
        .unwrap();
    assert_eq!(version, ProtocolVersion::TLSv1_3);
    assert_eq!(protocol.as_deref(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn modern_refuses_tls_1_2() {
    let server = start(Profile::named(ProfileName::Modern));
    assert!(negotiate(&server, TLS12, None, &[]).await.is_err());
    assert!(negotiate(&server, TLS13, None, &[]).await.is_ok());
}

#[tokio::test]
async fn clients_with_hybrid_groups_alone_are_served() {
    use aws_lc_rs::kx_group::{MLKEM768, SECP256R1MLKEM768, X25519, X25519MLKEM768};
    let connects = async |server: &Server, group| {
        let provider = CryptoProvider {
            kx_groups: vec![group],
            ..aws_lc_rs::default_provider()
        };
        server.connect(provider, TLS13, &[]).await.is_ok()
    };
    let server = start(Profile::default());
    assert!(connects(&server, X25519MLKEM768).await && connects(&server, X25519).await);
    assert!(!connects(&server, MLKEM768).await, "only hybrid groups are on");
    let listed = ["SecP256r1MLKEM768".parse().unwrap()];
    let hybrid = start(Profile::custom(MinVersion::Tls13, &[], &listed).unwrap());
    assert!(connects(&hybrid, SECP256R1MLKEM768).await && !connects(&hybrid, X25519).await);
}

#[tokio::test]
async fn a_custom_list_is_all_that_tls_1_2_gets() {
    let listed = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".parse().unwrap();
    let server = start(Profile::custom(MinVersion::Tls12, &[listed], &[]).unwrap());
    let aes_256 = aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
    let aes_128 = aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    assert_eq!(negotiate(&server, TLS12, None, &[]).await.unwrap().1, aes_256);
    assert!(negotiate(&server, TLS12, Some(aes_128), &[]).await.is_err());
    assert!(negotiate(&server, TLS13, None, &[]).await.is_ok());
}
