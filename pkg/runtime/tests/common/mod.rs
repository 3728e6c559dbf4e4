//! An HTTPS server on a loopback port, and TLS clients that trust it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::Router;
use olm_runtime::{
    serve::{self, Limits},
    tls::{Profile, ServingCert, authorities, install_provider, issue},
};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, crypto::CryptoProvider};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) ca: String,
    pub(crate) shutdown: CancellationToken,
}

impl Server {
    pub(crate) fn start(profile: Profile, limits: Limits, router: Router) -> Self {
        install_provider();
        let names = ["localhost".to_owned()];
        let issued = issue("test", &names, SystemTime::now(), Duration::from_hours(1)).unwrap();
        let certificate = ServingCert::fixed(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes())
            .unwrap()
            .with_profile(profile);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        tokio::spawn(
            async move { serve::tls_on("test", listener, router, &certificate, limits, token).await },
        );
        Self {
            address,
            ca: issued.ca_pem,
            shutdown,
        }
    }

    /// Completes a TLS handshake and sends nothing after it.
    pub(crate) async fn connect(
        &self,
        provider: CryptoProvider,
        version: &'static SupportedProtocolVersion,
        protocols: &[&str],
    ) -> io::Result<TlsStream<TcpStream>> {
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
        tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect("localhost".try_into().unwrap(), tcp)
            .await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
