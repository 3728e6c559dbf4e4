//! Recipients of credentials: the registry they belong to, its token service, and no other host.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "tests may fail loudly"
)]

mod common;

use std::{
    io::{Read as _, Write as _},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use common::{Answer, Fixture, Host, Image, RecordedRequest, answer, cause, not_found};
use olm_harness::{ImageBuilder, Registry, RegistryOptions, TokenService};
use olm_image::{HostClass, HostPolicy, RegistryError};
use serde_json::json;

/// Place of the flags that make a registry usable.
const BOTH: &str = "in a cluster on both Deployments, catalogd-controller-manager and operator-controller-controller-manager";

/// `user:secret` as a header.
const USER: &str = "Basic dXNlcjpzZWNyZXQ=";

/// Issuer of tokens that the distribution project's registry accepts.
#[derive(Clone)]
struct Issuer(std::sync::Arc<EcdsaKeyPair>);

impl Issuer {
    fn new() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref()).unwrap();
        Self(std::sync::Arc::new(key))
    }

    fn jwks(&self) -> String {
        let point = self.0.public_key().as_ref();
        json!({"keys": [{
            "kty": "EC", "crv": "P-256", "kid": "test", "use": "sig", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]),
        }]})
        .to_string()
    }

    fn token(&self, repository: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let encode = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = encode(json!({"alg": "ES256", "typ": "JWT", "kid": "test"}));
        let claims = encode(json!({
            "iss": "test", "sub": "user", "aud": "registry", "nbf": now - 10, "iat": now, "exp": now + 300,
            "jti": "1", "access": [{"type": "repository", "name": repository, "actions": ["pull", "push"]}],
        }));
        let text = format!("{head}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Starts a token service for one user and one refresh token.
    fn serve(&self, asked: &RecordedRequest) -> Answer {
        let form = if asked.body.is_empty() {
            &asked.query
        } else {
            &asked.body
        };
        let scope = url::form_urlencoded::parse(form.as_bytes())
            .find_map(|(name, value)| (name == "scope").then(|| value.into_owned()))
            .unwrap_or_default();
        let repository = scope.split(':').nth(1).unwrap_or_default();
        let known = asked.authorization.as_deref() == Some(USER)
            || asked.body.contains("grant_type=refresh_token")
                && asked.body.contains("refresh_token=refresh&");
        if known {
            answer(
                200,
                &[],
                json!({"access_token": self.token(repository)}).to_string(),
            )
        } else {
            answer(401, &[], "")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_real_registry() {
    let issuer = Issuer::new();
    let serving = issuer.clone();
    let service = Host::start(None, move |asked| serving.serve(asked));
    let registry = Registry::start_with(RegistryOptions {
        token: Some(TokenService {
            realm: format!("http://{}/token", service.address()),
            issuer: "test".to_owned(),
            service: "registry".to_owned(),
            jwks: issuer.jwks(),
        }),
        ..RegistryOptions::default()
    })
    .await
    .unwrap();
    ImageBuilder::new()
        .file("a", "1")
        .auth("user", "secret")
        .push(&registry, "team/app:v1")
        .await
        .unwrap();
    let host = registry.host();
    let fixture = Fixture::plain(&[&host]);
    let image = format!("{host}/team/app:v1");

    let error = fixture.pull(&image).await.unwrap_err();
    assert!(matches!(
        cause(error),
        RegistryError::Unauthorized { offered: false, .. }
    ));
    fixture.credentials(&json!({&host: {"username": "user", "password": "wrong"}}));
    let error = fixture.pull(&image).await.unwrap_err();
    assert!(matches!(
        cause(error),
        RegistryError::Unauthorized { offered: true, .. }
    ));

    // The entry of the repository wins over that of the host.
    fixture.credentials(&json!({
        &host: {"username": "user", "password": "wrong"},
        format!("{host}/team"): {"auth": STANDARD.encode("user:secret")},
    }));
    let unpacked = fixture.pull(&image).await.unwrap();
    assert_eq!(std::fs::read_to_string(unpacked.root.join("a")).unwrap(), "1");
    let asked = service.requests().pop().unwrap();
    assert_eq!(
        asked.query,
        "service=registry&scope=repository%3Ateam%2Fapp%3Apull"
    );

    // A refresh token is sent in a form, not in a URL.
    let fixture = Fixture::plain(&[&host]);
    fixture.credentials(&json!({&host: {"auth": "", "identitytoken": "refresh"}}));
    fixture.pull(&image).await.unwrap();
    let asked = service.requests().pop().unwrap();
    assert!(
        asked.query.is_empty() && asked.authorization.is_none(),
        "{asked:?}"
    );
    fixture.credentials(&json!({&host: {"identitytoken": "stale"}}));
    let error = fixture
        .puller()
        .resolve(&image.parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(
        cause(error),
        RegistryError::Unauthorized { offered: true, .. }
    ));
}

/// Registry that requires a token of a service on another host, and knows one token.
fn wants_token(
    image: Image,
    realm: String,
) -> impl Fn(&RecordedRequest) -> Answer + Clone + Send + Sync + 'static {
    move |asked| {
        if asked.authorization.as_deref() == Some("Bearer good") {
            return image.serve(asked);
        }
        let challenge = format!("Bearer realm=\"{realm}\",service=\"s\"");
        answer(401, &[("www-authenticate", &challenge)], "")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_token_service_receives_no_credentials() {
    let elsewhere = Host::start(None, |asked| {
        if asked.authorization.as_deref() == Some(USER) {
            answer(200, &[], r#"{"token":"good"}"#)
        } else {
            answer(401, &[], "")
        }
    });
    let realm = format!("http://elsewhere.test:{}/token", elsewhere.port());
    let registry = Host::start(None, wants_token(Image::of(b"1"), realm));
    let host = format!("registry.example:{}", registry.port());
    let mut fixture = Fixture::plain(&[&host]);
    fixture.name("registry.example", &registry);
    fixture.name("elsewhere.test", &elsewhere);
    fixture.credentials(&json!({&host: {"username": "user", "password": "secret"}}));
    let image = format!("{host}/a/b:v1");

    let error = cause(fixture.pull(&image).await.unwrap_err());
    assert!(
        matches!(&error, RegistryError::ForeignRealm { realm, .. } if realm == "elsewhere.test"),
        "{error}"
    );
    assert!(error.to_string().contains("--registry-token-host"), "{error}");
    assert_eq!(elsewhere.requests().len(), 1);
    assert!(
        elsewhere
            .requests()
            .iter()
            .all(|asked| asked.authorization.is_none())
    );

    fixture.config.token_hosts = vec!["elsewhere.test".to_owned()];
    fixture.pull(&image).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_drops_the_authorization() {
    let image = Image::of(b"redirected");
    let serving = image.clone();
    let store = Host::start(None, move |asked| serving.serve(asked));
    let port = store.port();
    let registry = Host::start(None, move |asked| {
        if asked.authorization.as_deref() != Some(USER) {
            return answer(401, &[("www-authenticate", "Basic realm=\"r\"")], "");
        }
        if asked.path.contains("/blobs/") {
            // Credentials in the URL are dropped, too.
            let target = format!("http://user:secret@store.example:{port}{}", asked.path);
            return answer(307, &[("location", &target)], "");
        }
        image.serve(asked)
    });
    let host = format!("registry.example:{}", registry.port());
    let mut fixture = Fixture::plain(&[&host]);
    fixture.name("registry.example", &registry);
    fixture.name("store.example", &store);
    fixture.credentials(&json!({&host: {"username": "user", "password": "secret"}}));
    let unpacked = fixture.pull(&format!("{host}/a/b:v1")).await.unwrap();
    assert_eq!(
        std::fs::read_to_string(unpacked.root.join("a")).unwrap(),
        "redirected"
    );
    assert_eq!(store.requests().len(), 2);
    assert!(
        store.requests().iter().all(|asked| asked.authorization.is_none()),
        "{:?}",
        store.requests()
    );
    let blobs = registry.requests_for("/blobs/");
    assert!(
        blobs
            .iter()
            .all(|asked| asked.authorization.as_deref() == Some(USER)),
        "{blobs:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_allowed_at_one_port_is_refused_at_others() {
    // A URL without a port connects to the port of the stub.
    let inside = Host::start(None, |_| {
        answer(302, &[("location", "https://inside.example/")], "")
    });
    let registry = Host::start(None, |asked| {
        let target = match asked.path.rsplit('/').next() {
            Some("allowed") => "http://inside.example/",
            _ => "https://inside.example:6443/",
        };
        answer(302, &[("location", target)], "")
    });
    let host = format!("registry.example:{}", registry.port());
    let mut fixture = Fixture::plain(&[&host]);
    fixture.config.hosts = HostPolicy::new(vec!["inside.example:80".parse().unwrap()]);
    fixture.name("registry.example", &registry);
    fixture.name("inside.example", &inside);
    for (tag, requests) in [("other", 0), ("allowed", 1)] {
        let error = cause(fixture.pull(&format!("{host}/a/b:{tag}")).await.unwrap_err());
        assert!(
            matches!(&error, RegistryError::Host { refused, .. } if refused.class == HostClass::Loopback),
            "{tag}: {error}"
        );
        assert_eq!(inside.requests().len(), requests, "{tag}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_do_not_lead_to_refused_hosts() {
    let image = Image::of(b"1");
    let inside = Host::start(None, |_| answer(200, &[], "secret"));
    let port = inside.port();
    let registry = Host::start(None, move |asked| {
        let target = match asked.path.rsplit('/').next() {
            Some("loopback") => format!("http://127.0.0.1:{port}/"),
            Some("name") => format!("http://inside.example:{port}/"),
            Some("metadata") => "http://169.254.169.254/latest/meta-data".to_owned(),
            Some("service") => format!("http://inside.ns.svc:{port}/"),
            Some("file") => "file:///etc/passwd".to_owned(),
            Some("circle") => asked.path.clone(),
            _ => return image.serve(asked),
        };
        answer(302, &[("location", &target)], "")
    });
    // The registry itself is allowed because its name is listed.
    let host = format!("registry.example:{}", registry.port());
    let mut fixture = Fixture::strict();
    fixture.config.plain_http = vec![host.clone()];
    fixture.name("registry.example", &registry);
    fixture.name("inside.example", &inside);
    fixture.name("inside.ns.svc", &inside);
    fixture.pull(&format!("{host}/a/b:v1")).await.unwrap();
    for (tag, class) in [
        ("loopback", HostClass::Loopback),
        ("name", HostClass::Loopback),
        ("metadata", HostClass::LinkLocal),
        ("service", HostClass::Cluster),
    ] {
        let error = cause(fixture.pull(&format!("{host}/a/b:{tag}")).await.unwrap_err());
        assert!(
            matches!(&error, RegistryError::Host { refused, .. } if refused.class == class),
            "{tag}: {error}"
        );
    }
    for (tag, why) in [
        ("file", "to a URL that is neither HTTPS nor HTTP"),
        ("circle", "too often"),
    ] {
        let error = cause(fixture.pull(&format!("{host}/a/b:{tag}")).await.unwrap_err());
        assert_eq!(
            error.to_string(),
            format!("registry {host} redirects {why}, which is not followed")
        );
    }
    assert!(inside.requests().is_empty());

    // An unlisted host is not contacted either.
    fixture.config.plain_http.clear();
    let error = cause(fixture.pull(&format!("{host}/a/b:v1")).await.unwrap_err());
    assert!(matches!(error, RegistryError::Host { .. }), "{error}");
    let error = cause(
        fixture
            .pull(&format!("127.0.0.1:{port}/a/b:v1"))
            .await
            .unwrap_err(),
    );
    let text = error.to_string();
    assert!(text.contains("--allow-registry-host"), "{text}");
    assert!(text.contains(BOTH), "{text}");
    // registries.conf counts as the administrator's permission.
    fixture.write(
        "registries.conf",
        format!("[[registry]]\nlocation = \"{host}\"\ninsecure = true\n"),
    );
    fixture.pull(&format!("{host}/a/b:v1")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_of_the_environment() {
    let image = Image::of(b"proxied");
    let proxy = Host::start(None, move |asked| image.serve(asked));
    let status = tokio::task::spawn_blocking(move || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "child_of_the_proxy_test"])
            .env("HTTP_PROXY", format!("http://{}", proxy.address()))
            .env("http_proxy", format!("http://{}", proxy.address()))
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    assert!(status.status.success(), "{status:?}");
}

/// The proxy is on loopback, which is rejected for all other hosts, and only the proxy can reach the registry.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by proxies_of_the_environment, which sets the environment"]
async fn child_of_the_proxy_test() {
    let mut fixture = Fixture::strict();
    fixture.config.plain_http = vec!["registry.invalid".to_owned()];
    let unpacked = fixture.pull("registry.invalid/a/b:v1").await.unwrap();
    assert_eq!(
        std::fs::read_to_string(unpacked.root.join("a")).unwrap(),
        "proxied"
    );
}

mod tls {
    use std::sync::Arc;

    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
        date_time_ymd,
    };
    use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};
    use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

    use super::*;

    struct Authority(CertifiedIssuer<'static, KeyPair>);

    impl Authority {
        fn new() -> Self {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
        }

        fn sign(
            &self,
            name: &str,
            change: impl FnOnce(&mut CertificateParams),
        ) -> (rcgen::Certificate, KeyPair) {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
            change(&mut params);
            let key = KeyPair::generate().unwrap();
            (params.signed_by(&key, &self.0).unwrap(), key)
        }

        fn server(
            &self,
            name: &str,
            change: impl FnOnce(&mut CertificateParams),
            client: Option<&Self>,
        ) -> ServerConfig {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let (certificate, key) = self.sign(name, change);
            let builder = ServerConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .unwrap();
            let builder = match client {
                None => builder.with_no_client_auth(),
                Some(authority) => {
                    let mut roots = RootCertStore::empty();
                    roots.add(authority.0.der().clone()).unwrap();
                    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                    builder.with_client_cert_verifier(verifier.build().unwrap())
                }
            };
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
            builder
                .with_single_cert(vec![certificate.der().clone()], key)
                .unwrap()
        }
    }

    fn served(tls: ServerConfig) -> Host {
        let image = Image::of(b"1");
        Host::start(Some(tls), move |asked| image.serve(asked))
    }

    fn fixture() -> Fixture {
        Fixture::plain(&[])
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn each_failure_has_its_own_sentence() {
        let authority = Authority::new();
        let good = served(authority.server("localhost", |_| {}, None));
        let other = served(authority.server("other.example", |_| {}, None));
        let expired = served(authority.server(
            "localhost",
            |params| {
                params.not_before = date_time_ymd(2000, 1, 1);
                params.not_after = date_time_ymd(2001, 1, 1);
            },
            None,
        ));
        let mut fixture = fixture();
        let message = async |fixture: &Fixture, host: &Host| {
            let image = format!("localhost:{}/a/b:v1", host.port());
            cause(fixture.pull(&image).await.unwrap_err()).to_string()
        };
        let unknown = message(&fixture, &good).await;
        assert!(unknown.contains("unknown authority"), "{unknown}");
        assert!(
            unknown.ends_with(&format!("with --pull-cas-dir, {BOTH}")),
            "{unknown}"
        );
        fixture.write("ca/ca.crt", authority.0.pem());
        fixture.config.ca_dir = Some(fixture.folder.path().join("ca"));
        fixture
            .pull(&format!("localhost:{}/a/b:v1", good.port()))
            .await
            .unwrap();
        assert!(
            message(&fixture, &other)
                .await
                .contains("not valid for this name")
        );
        let first = message(&fixture, &expired).await;
        assert!(first.contains("has expired"), "{first}");
        assert_eq!(first, message(&fixture, &expired).await);

        let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let host = format!("localhost:{}", plain.local_addr().unwrap().port());
        std::thread::spawn(move || {
            for mut client in plain.incoming().flatten() {
                let _ = client.read(&mut [0; 1024]);
                let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
            }
        });
        let without_tls = cause(fixture.pull(&format!("{host}/a/b:v1")).await.unwrap_err()).to_string();
        assert_eq!(
            without_tls,
            format!(
                "registry {host} cannot be trusted over TLS: it answers without TLS; allow plain HTTP with \
                 --plain-http-registry={host}, {BOTH}"
            )
        );

        // Authority for one registry only.
        fixture.config.ca_dir = None;
        let folder = format!("certs.d/localhost:{}", good.port());
        fixture.write(&format!("{folder}/own.crt"), authority.0.pem());
        fixture
            .pull(&format!("localhost:{}/a/c:v1", good.port()))
            .await
            .unwrap();
        assert!(message(&fixture, &other).await.contains("unknown authority"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn certificates_of_docker_hub_are_in_the_directory_of_its_references() {
        let authority = Authority::new();
        let hub = served(authority.server("registry-1.docker.io", |_| {}, None));
        let mut fixture = fixture();
        fixture.name("registry-1.docker.io", &hub);
        let image = "docker.io/team/app:v1";
        assert!(fixture.pull(image).await.is_err());
        for name in ["registry-1.docker.io", "docker.io"] {
            let file = format!("certs.d/{name}/own.crt");
            fixture.write(&file, authority.0.pem());
            fixture.puller().forget("owner").await.unwrap();
            fixture.pull(image).await.unwrap();
            // The directory remains, without an authority.
            std::fs::remove_file(fixture.folder.path().join(file)).unwrap();
        }
        fixture.write("certs.d/registry-1.docker.io/own.crt", authority.0.pem());
        fixture.puller().forget("owner").await.unwrap();
        let error = fixture.pull(image).await.unwrap_err().message();
        assert!(
            error.contains("unknown authority"),
            "the directory of the reference wins: {error}"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn certificates_are_presented_to_the_registry_alone() {
        let authority = Authority::new();
        let closed = served(authority.server("localhost", |_| {}, Some(&authority)));
        let port = closed.port();
        let redirecting = Host::start(
            Some(authority.server("localhost", |_| {}, Some(&authority))),
            move |asked| {
                let target = format!("https://localhost:{port}{}", asked.path);
                answer(307, &[("location", &target)], "")
            },
        );
        let mut fixture = fixture();
        fixture.write("ca/ca.crt", authority.0.pem());
        fixture.config.ca_dir = Some(fixture.folder.path().join("ca"));
        let image = format!("localhost:{port}/a/b:v1");
        assert!(fixture.pull(&image).await.is_err());

        let (certificate, key) = authority.sign("client", |_| {});
        for folder in ["ca".to_owned(), format!("certs.d/localhost:{port}")] {
            let (cert_file, key_file) = (format!("{folder}/client.cert"), format!("{folder}/client.key"));
            fixture.write(&cert_file, certificate.pem());
            fixture.write(&key_file, key.serialize_pem());
            fixture.puller().forget("owner").await.unwrap();
            fixture.pull(&image).await.unwrap();
            let redirected = format!("localhost:{}/a/b:v1", redirecting.port());
            if folder == "ca" {
                // The registry receives the client certificate, the target of its redirect does not.
                assert!(fixture.pull(&redirected).await.is_err());
                assert!(!redirecting.requests().is_empty());
                std::fs::remove_file(fixture.folder.path().join(cert_file)).unwrap();
                std::fs::remove_file(fixture.folder.path().join(key_file)).unwrap();
            }
        }
        fixture.write("ca/half.cert", certificate.pem());
        let error = fixture.pull(&image).await.unwrap_err().message();
        assert!(error.contains("half.key"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn redirects_from_https_to_http_are_refused() {
        let authority = Authority::new();
        let open = Host::start(None, |_| not_found());
        let port = open.port();
        let registry = Host::start(Some(authority.server("localhost", |_| {}, None)), move |asked| {
            if asked.path.ends_with("/redirect") {
                let target = format!("http://localhost:{port}{}", asked.path);
                return answer(307, &[("location", &target)], "");
            }
            let challenge = format!("Bearer realm=\"http://localhost:{port}/token\"");
            answer(401, &[("www-authenticate", &challenge)], "")
        });
        let mut fixture = fixture();
        fixture.write("ca/ca.crt", authority.0.pem());
        fixture.config.ca_dir = Some(fixture.folder.path().join("ca"));
        let host = format!("localhost:{}", registry.port());
        fixture.credentials(&json!({&host: {"username": "user", "password": "secret"}}));
        let error = cause(fixture.pull(&format!("{host}/a/b:redirect")).await.unwrap_err());
        assert!(matches!(error, RegistryError::Redirect { .. }), "{error}");
        let error = cause(fixture.pull(&format!("{host}/a/b:token")).await.unwrap_err());
        assert!(matches!(error, RegistryError::Token { .. }), "{error}");
        assert!(open.requests().is_empty());
    }
}
