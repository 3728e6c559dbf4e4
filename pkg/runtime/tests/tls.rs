//! What a server with a TLS profile speaks, seen by a client over a real socket.
#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Router, routing::get};
use olm_runtime::{
    serve,
    tls::{MinVersion, Profile, ProfileName, ServingCert, authorities, install_provider, issue},
};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedCipherSuite,
    crypto::{CryptoProvider, ring},
};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

struct Server {
    address: SocketAddr,
    ca: String,
    ends: CancellationToken,
}

impl Server {
    fn start(profile: Profile) -> Self {
        install_provider();
        let names = ["localhost".to_owned()];
        let issued = issue("test", &names, SystemTime::now(), Duration::from_hours(1)).unwrap();
        let certificate = ServingCert::fixed(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes())
            .unwrap()
            .with_profile(profile);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let ends = CancellationToken::new();
        let until = ends.clone();
        tokio::spawn(async move {
            let router = Router::new().route("/", get(async || "here"));
            serve::tls_on(
                "test",
                listener,
                router,
                &certificate,
                serve::Traffic::default(),
                until,
            )
            .await
        });
        Self {
            address,
            ca: issued.ca_pem,
            ends,
        }
    }

    /// What is agreed on with a client of one version, with only these suites: version, suite, protocol.
    async fn agree(
        &self,
        version: &'static rustls::SupportedProtocolVersion,
        suites: Option<SupportedCipherSuite>,
        protocols: &[&str],
    ) -> Result<(ProtocolVersion, SupportedCipherSuite, Option<Vec<u8>>), std::io::Error> {
        let mut provider: CryptoProvider = ring::default_provider();
        if let Some(suite) = suites {
            provider.cipher_suites = vec![suite];
        }
        let mut roots = RootCertStore::empty();
        for authority in authorities(self.ca.as_bytes()).unwrap() {
            roots.add(authority).unwrap();
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let tcp = TcpStream::connect(self.address).await?;
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect("localhost".try_into().unwrap(), tcp)
            .await?;
        let (_, session) = stream.get_ref();
        Ok((
            session.protocol_version().unwrap(),
            session.negotiated_cipher_suite().unwrap(),
            session.alpn_protocol().map(<[u8]>::to_vec),
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.cancel();
    }
}

const TLS12: &rustls::SupportedProtocolVersion = &rustls::version::TLS12;
const TLS13: &rustls::SupportedProtocolVersion = &rustls::version::TLS13;

#[tokio::test]
async fn intermediate_speaks_both_and_prefers_http_2() {
    let server = Server::start(Profile::default());
    let (version, _, protocol) = server.agree(TLS12, None, &["http/1.1"]).await.unwrap();
    assert_eq!(version, ProtocolVersion::TLSv1_2);
    assert_eq!(protocol.as_deref(), Some(&b"http/1.1"[..]));
    let (version, _, protocol) = server.agree(TLS13, None, &["http/1.1", "h2"]).await.unwrap();
    assert_eq!(version, ProtocolVersion::TLSv1_3);
    assert_eq!(protocol.as_deref(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn modern_refuses_tls_1_2() {
    let server = Server::start(Profile::named(ProfileName::Modern));
    assert!(server.agree(TLS12, None, &[]).await.is_err());
    assert!(server.agree(TLS13, None, &[]).await.is_ok());
}

#[tokio::test]
async fn a_custom_list_is_all_that_tls_1_2_gets() {
    let listed = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".parse().unwrap();
    let server = Server::start(Profile::custom(MinVersion::Tls12, &[listed], &[]).unwrap());
    let aes_256 = ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
    let aes_128 = ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    assert_eq!(server.agree(TLS12, None, &[]).await.unwrap().1, aes_256);
    assert!(server.agree(TLS12, Some(aes_128), &[]).await.is_err());
    assert!(server.agree(TLS13, None, &[]).await.is_ok());
}
