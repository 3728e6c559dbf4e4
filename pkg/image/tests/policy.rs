//! Signature policies on images with real cosign signatures, in a real registry.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use common::{Fixture, pull, sha256};
use oci_client::{Reference as Name, RegistryOperation, secrets::RegistryAuth};
use olm_harness::{ImageBuilder, Registry};
use olm_image::{Error, PolicyError, Puller, Unpacked};
use serde_json::{Value, json};

struct Signer(EcdsaKeyPair);

impl Signer {
    fn new() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref()).unwrap())
    }

    /// Returns the public key as `cosign public-key` prints it.
    fn pem(&self) -> String {
        let mut der = STANDARD.decode("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE").unwrap();
        der.pop();
        der.extend_from_slice(self.0.public_key().as_ref());
        let text = STANDARD.encode(der);
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n{}\n-----END PUBLIC KEY-----\n",
            &text[..64],
            &text[64..]
        )
    }

    fn sign(&self, payload: &[u8]) -> String {
        STANDARD.encode(self.0.sign(&SystemRandom::new(), payload).unwrap())
    }
}

fn statement(reference: &str, digest: &str) -> Vec<u8> {
    json!({
        "critical": {
            "identity": {"docker-reference": reference},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": {"creator": "test"},
    })
    .to_string()
    .into_bytes()
}

/// Attaches statements with their signatures to a digest, replacing former ones.
async fn attach(registry: &Registry, repository: &str, digest: &str, signed: &[(Vec<u8>, String)]) {
    let client = registry.client();
    let tag = format!("{}.sig", digest.replace(':', "-"));
    let name: Name = format!("{}/{repository}:{tag}", registry.host()).parse().unwrap();
    client
        .auth(&name, &RegistryAuth::Anonymous, RegistryOperation::Push)
        .await
        .unwrap();
    let config = b"{}".to_vec();
    client
        .push_blob(&name, config.clone(), &sha256(&config))
        .await
        .unwrap();
    let mut layers = Vec::new();
    for (payload, signature) in signed {
        client
            .push_blob(&name, payload.clone(), &sha256(payload))
            .await
            .unwrap();
        layers.push(json!({
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": sha256(payload),
            "size": payload.len(),
            "annotations": {"dev.cosignproject.cosign/signature": signature},
        }));
    }
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(&config), "size": 2},
        "layers": layers,
    });
    client
        .push_manifest_raw(
            &name,
            manifest.to_string().into_bytes(),
            "application/vnd.oci.image.manifest.v1+json".parse().unwrap(),
        )
        .await
        .unwrap();
}

struct World {
    registry: Registry,
    fixture: Fixture,
    puller: Puller,
}

impl World {
    async fn new() -> Self {
        let registry = Registry::start().await.unwrap();
        let mut fixture = Fixture::plain(&[&registry.host()]);
        fixture.config.policy_file = Some(fixture.folder.path().join("policy.json"));
        let puller = fixture.puller();
        Self {
            registry,
            fixture,
            puller,
        }
    }

    fn host(&self) -> String {
        self.registry.host()
    }

    /// Rejects all images except those that meet these requirements for the registry.
    fn policy(&self, requirements: &Value) {
        let policy =
            json!({"default": [{"type": "reject"}], "transports": {"docker": {self.host(): requirements}}});
        self.fixture.write("policy.json", policy.to_string());
    }

    async fn pull(&self, name: &str) -> Result<Unpacked, Error> {
        pull(&self.puller, &format!("{}/{name}", self.host())).await
    }
}

fn refusal(error: Error) -> PolicyError {
    match error {
        Error::Refused { source, .. } => *source,
        other => panic!("{}", other.message()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_are_verified() {
    let world = World::new().await;
    let (signer, stranger) = (Signer::new(), Signer::new());
    let digest = ImageBuilder::new()
        .file("a", "1")
        .push(&world.registry, "team/app:v1")
        .await
        .unwrap();
    let key = world.fixture.folder.path().join("cosign.pub");
    world.fixture.write("cosign.pub", signer.pem());
    let required = json!([{
        "type": "sigstoreSigned", "keyPath": key, "signedIdentity": {"type": "matchRepository"},
    }]);
    world.policy(&required);
    let repository = format!("{}/team/app", world.host());

    let error = world.pull("team/app:v1").await.unwrap_err();
    assert!(
        error
            .message()
            .contains("A signature was required, but no signature exists"),
        "{}",
        error.message()
    );
    assert!(matches!(refusal(error), PolicyError::NoSignature { .. }));

    let good = statement(&repository, &digest);
    let other = statement(&repository, &format!("sha256:{}", "0".repeat(64)));
    let elsewhere = statement("evil.example/team/app", &digest);
    let mut tampered = good.clone();
    tampered.push(b' ');
    let odd = br#"{"critical":{"type":"something else","image":{"docker-manifest-digest":""},"identity":{"docker-reference":""}}}"#.to_vec();
    for (signed, cause) in [
        ((good.clone(), stranger.sign(&good)), "none of the trusted keys"),
        ((tampered, signer.sign(&good)), "none of the trusted keys"),
        ((good.clone(), "no base64".to_owned()), "none of the trusted keys"),
        ((other.clone(), signer.sign(&other)), "for other content"),
        (
            (elsewhere.clone(), signer.sign(&elsewhere)),
            "for the name \"evil.example/team/app\"",
        ),
        ((odd.clone(), signer.sign(&odd)), "of another type"),
    ] {
        attach(&world.registry, "team/app", &digest, &[signed]).await;
        let error = world.pull("team/app:v1").await.unwrap_err();
        assert!(
            !error.terminal() && error.message().contains(cause),
            "{cause}: {}",
            error.message()
        );
        assert!(matches!(refusal(error), PolicyError::NoneAccepted { .. }));
    }
    let all = [
        (other.clone(), signer.sign(&other)),
        (good.clone(), signer.sign(&good)),
    ];
    attach(&world.registry, "team/app", &digest, &all).await;
    world.pull("team/app:v1").await.unwrap();

    // By default the signed name must equal the requested one, tag included.
    world.policy(&json!([{"type": "sigstoreSigned", "keyData": STANDARD.encode(signer.pem())}]));
    let error = world.pull("team/app:v1").await.unwrap_err();
    assert!(error.message().contains("not for"), "{}", error.message());
    let exact = statement(&format!("{repository}:v1"), &digest);
    attach(
        &world.registry,
        "team/app",
        &digest,
        &[(exact.clone(), signer.sign(&exact))],
    )
    .await;
    world.pull("team/app:v1").await.unwrap();
    world.pull(&format!("team/app@{digest}")).await.unwrap();

    // Two requirements must both be met.
    let stranger_key = STANDARD.encode(stranger.pem());
    let mut both = vec![required[0].clone()];
    both.push(json!({"type": "sigstoreSigned", "keyData": stranger_key, "signedIdentity": {"type": "matchRepository"}}));
    world.policy(&json!(both));
    assert!(world.pull("team/app:v1").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_applies_to_cached_images_and_indexes() {
    let world = World::new().await;
    let signer = Signer::new();
    let digest = ImageBuilder::new()
        .file("a", "1")
        .as_index()
        .push(&world.registry, "team/app:v1")
        .await
        .unwrap();
    world.policy(&json!([{"type": "insecureAcceptAnything"}]));
    let first = world.pull("team/app:v1").await.unwrap();

    let required = json!([{
        "type": "sigstoreSigned", "keyData": STANDARD.encode(signer.pem()), "signedIdentity": {"type": "matchRepository"},
    }]);
    world.policy(&required);
    assert!(matches!(
        refusal(world.pull("team/app:v1").await.unwrap_err()),
        PolicyError::NoSignature { .. }
    ));
    // By default cosign signs the index.
    let good = statement(&format!("{}/team/app", world.host()), &digest);
    attach(
        &world.registry,
        "team/app",
        &digest,
        &[(good.clone(), signer.sign(&good))],
    )
    .await;
    let second = world.pull("team/app:v1").await.unwrap();
    assert_eq!(first.root, second.root);
    let (requested, reference) = (
        format!("{}/team/app:v1", world.host()).parse().unwrap(),
        format!("{}/team/app@{digest}", world.host()).parse().unwrap(),
    );
    let required = world.puller.judge(&requested, &reference).await.unwrap();
    assert!(required.is_some() && first.verified.is_none());
    assert_eq!(second.verified, required);
    // An image accepted under the same requirements needs no registry.
    let by_digest = format!("team/app@{digest}");
    world.pull(&by_digest).await.unwrap();
    let World {
        mut registry,
        fixture,
        puller,
    } = world;
    let host = registry.host();
    registry.stop();
    pull(&puller, &format!("{host}/{by_digest}")).await.unwrap();

    let policy = |text: &str| fixture.write("policy.json", text);
    policy(r#"{"default":[{"type":"reject"}]}"#);
    let error = pull(&puller, &format!("{host}/{by_digest}")).await.unwrap_err();
    assert!(matches!(refusal(error), PolicyError::Rejected { .. }));
    let judged = puller.judge(&requested, &reference).await;
    assert!(matches!(
        refusal(judged.unwrap_err()),
        PolicyError::Rejected { .. }
    ));
    policy("{");
    let error = pull(&puller, &format!("{host}/{by_digest}")).await.unwrap_err();
    assert!(
        error.message().starts_with("error loading policy context: "),
        "{}",
        error.message()
    );
    assert_eq!(puller.warning(), None);
}
