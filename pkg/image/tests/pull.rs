//! Pulls from a real registry.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    clippy::similar_names,
    clippy::unused_async,
    clippy::too_many_lines,
    reason = "tests may fail loudly"
)]

use std::{fs, path::Path, time::Duration};

use olm_harness::{Format, ImageBuilder, Registry, RegistryOptions};
use olm_image::{
    CanonicalRef, Error, Filter, HostPolicy, ImageConfig, Puller, Reference, RegistryError, UnpackError,
};
use tempfile::TempDir;

const LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// `user` with the password `secret`.
const HTPASSWD: &str = "user:$2a$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

struct Fixture {
    cache: TempDir,
    config: ImageConfig,
}

impl Fixture {
    /// Configuration that does not depend on the machine's own.
    fn new(registry: &Registry) -> Self {
        let cache = tempfile::tempdir().unwrap();
        let mut config = ImageConfig::new(cache.path().join("cache"));
        let conf = cache.path().join("registries.conf");
        fs::write(&conf, "").unwrap();
        config.registries_conf = Some(conf);
        config.plain_http = vec![registry.host()];
        config.hosts = HostPolicy::new(vec!["loopback".parse().unwrap()]);
        config.auth_file = Some(cache.path().join("none.json"));
        config.limits.connect = Duration::from_secs(5);
        config.limits.request = Duration::from_secs(20);
        Self { cache, config }
    }

    fn puller(&self) -> Puller {
        Puller::new(self.config.clone())
    }

    fn registries(&self, text: &str) {
        fs::write(self.cache.path().join("registries.conf"), text).unwrap();
    }
}

fn tagged(registry: &Registry, name: &str) -> Reference {
    format!("{}/{name}", registry.host()).parse().unwrap()
}

fn catalog() -> ImageBuilder {
    ImageBuilder::new()
        .label(LABEL, "/configs")
        .file("configs/a/catalog.yaml", "schema: olm.package")
        .file("etc/passwd", "root")
}

fn cause(error: Error) -> RegistryError {
    match error {
        Error::Resolve { source, .. } | Error::Pull { source, .. } => *source,
        other => panic!("{}", other.message()),
    }
}

async fn fetch(puller: &Puller, reference: &Reference, filter: Filter) -> Result<olm_image::Unpacked, Error> {
    let canonical = puller.resolve(reference).await?;
    puller.fetch("owner", &canonical, filter).await
}

#[tokio::test(flavor = "multi_thread")]
async fn resolves_pulls_caches_and_forgets() {
    let mut registry = Registry::start().await.unwrap();
    let digest = catalog().push(&registry, "ns/catalog:v1").await.unwrap();
    let fixture = Fixture::new(&registry);
    let puller = fixture.puller();
    let reference = tagged(&registry, "ns/catalog:v1");
    let canonical = puller.resolve(&reference).await.unwrap();
    assert_eq!(
        canonical.to_string(),
        format!("{}/ns/catalog@{digest}", registry.host())
    );

    let first = puller
        .fetch("owner", &canonical, Filter::LabelDir(LABEL))
        .await
        .unwrap();
    assert_eq!(
        fs::read_to_string(first.root.join("a/catalog.yaml")).unwrap(),
        "schema: olm.package"
    );
    assert!(first.root.ends_with(Path::new(&digest).join("rootfs/configs")));
    assert!(!first.root.join("../etc").exists());
    assert_eq!(first.labels[LABEL], "/configs");

    // The tag moves: the new content replaces the old.
    let newer = catalog()
        .file("configs/b.yaml", "b")
        .push(&registry, "ns/catalog:v1")
        .await
        .unwrap();
    assert_ne!(newer, digest);
    let second = fetch(&puller, &reference, Filter::LabelDir(LABEL)).await.unwrap();
    assert!(second.root.join("b.yaml").exists() && !first.root.exists());

    // Cached content needs no registry, also after a restart.
    registry.stop();
    let again = fixture
        .puller()
        .fetch("owner", &second.reference, Filter::LabelDir(LABEL))
        .await
        .unwrap();
    assert_eq!(again, second);
    let error = puller.resolve(&reference).await.unwrap_err();
    assert!(matches!(cause(error), RegistryError::Refused { .. }));

    puller.forget("owner").await.unwrap();
    puller.forget("owner").await.unwrap();
    assert!(!second.root.exists());
    let error = puller.fetch("owner", &canonical, Filter::All).await.unwrap_err();
    assert!(!error.terminal());
    let (first, second) = (
        error.message(),
        puller
            .fetch("owner", &canonical, Filter::All)
            .await
            .unwrap_err()
            .message(),
    );
    assert_eq!(first, second, "messages do not change from try to try");
    assert!(first.contains("refuses connections"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_image_forms_are_accepted() {
    let registry = Registry::start().await.unwrap();
    let fixture = Fixture::new(&registry);
    let puller = fixture.puller();
    for (name, image) in [
        ("oci", ImageBuilder::new()),
        ("docker", ImageBuilder::new().format(Format::Docker)),
        ("index", ImageBuilder::new().as_index()),
        ("list", ImageBuilder::new().format(Format::Docker).as_index()),
    ] {
        let image = image
            .file("manifests/a.yaml", "1")
            .new_layer()
            .file("manifests/.wh.a.yaml", "")
            .file("manifests/b.yaml", name);
        let reference = format!("ns/{name}:v1");
        image.push(&registry, &reference).await.unwrap();
        let unpacked = fetch(&puller, &tagged(&registry, &reference), Filter::All)
            .await
            .unwrap_or_else(|error| panic!("{name}: {}", error.message()));
        assert_eq!(
            fs::read_to_string(unpacked.root.join("manifests/b.yaml")).unwrap(),
            name
        );
        assert!(!unpacked.root.join("manifests/a.yaml").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_says_what_it_is() {
    let registry = Registry::start().await.unwrap();
    let mut fixture = Fixture::new(&registry);
    let puller = fixture.puller();
    ImageBuilder::new()
        .file("a", "1")
        .push(&registry, "ns/plain:v1")
        .await
        .unwrap();
    let plain = tagged(&registry, "ns/plain:v1");

    let error = fetch(&puller, &plain, Filter::LabelDir(LABEL)).await.unwrap_err();
    assert_eq!(
        error.message(),
        format!("catalog image is missing the required label {LABEL:?}")
    );
    assert!(error.missing_label() && !error.terminal_for(&plain));
    let by_digest: Reference = puller.resolve(&plain).await.unwrap().into();
    assert!(error.terminal_for(&by_digest));

    let error = fetch(&puller, &tagged(&registry, "ns/none:v1"), Filter::All)
        .await
        .unwrap_err();
    assert!(
        error.message().contains("manifest unknown"),
        "{}",
        error.message()
    );
    assert!(matches!(cause(error), RegistryError::NotFound { .. }));

    for owner in ["../x", "A", ""] {
        let canonical = puller.resolve(&plain).await.unwrap();
        let error = puller.fetch(owner, &canonical, Filter::All).await.unwrap_err();
        assert!(error.terminal(), "{}", error.message());
    }

    let outside = ImageBuilder::new().label(LABEL, "/a/../../etc").file("a/b", "1");
    outside.push(&registry, "ns/outside:v1").await.unwrap();
    let error = fetch(
        &puller,
        &tagged(&registry, "ns/outside:v1"),
        Filter::LabelDir(LABEL),
    )
    .await
    .unwrap_err();
    assert!(
        matches!(error, Error::LabelDirectory { .. }),
        "{}",
        error.message()
    );

    fixture.config.limits.layer = 10;
    let error = fetch(&fixture.puller(), &plain, Filter::All).await.unwrap_err();
    assert!(matches!(cause(error), RegistryError::TooLarge { limit: 10, .. }));
    fixture.config.limits.layer = 1 << 20;
    fixture.config.limits.manifest = 10;
    let error = fixture.puller().resolve(&plain).await.unwrap_err();
    assert!(matches!(cause(error), RegistryError::TooLarge { limit: 10, .. }));
    fixture.config.limits.manifest = 1 << 20;
    fixture.config.limits.entries = 0;
    let error = fetch(&fixture.puller(), &plain, Filter::All).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Unpack {
                source: UnpackError::TooManyEntries { .. },
                ..
            }
        ),
        "{}",
        error.message()
    );
    // Failed pulls leave nothing behind.
    let left = fs::read_dir(fixture.config.cache_dir.join("unpack/owner"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn mirrors_are_used_and_blocked_locations_are_not() {
    let registry = Registry::start().await.unwrap();
    let digest = catalog().push(&registry, "mirror/ns/catalog:v1").await.unwrap();
    let fixture = Fixture::new(&registry);
    let puller = fixture.puller();
    let reference: Reference = "registry.invalid/ns/catalog:v1".parse().unwrap();
    fixture.registries(&format!(
        "[[registry]]\nlocation = \"registry.invalid\"\nblocked = true\n\
         [[registry.mirror]]\nlocation = \"127.0.0.1:1/none\"\ninsecure = true\n\
         [[registry.mirror]]\nlocation = \"{}/mirror\"\n",
        registry.host()
    ));
    let unpacked = fetch(&puller, &reference, Filter::LabelDir(LABEL)).await.unwrap();
    assert_eq!(
        unpacked.reference.to_string(),
        format!("registry.invalid/ns/catalog@{digest}")
    );

    // A mirror of tags alone serves the whole pull of a tag, and one of digests alone no part of it.
    for (pull, expected) in [("tag-only", true), ("digest-only", false)] {
        puller.forget("owner").await.unwrap();
        fixture.registries(&format!(
            "[[registry]]\nlocation = \"registry.invalid\"\n\
             [[registry.mirror]]\nlocation = \"{}/mirror\"\npull-from-mirror = \"{pull}\"\n",
            registry.host()
        ));
        let by_tag = puller
            .fetch_as("owner", &reference, &unpacked.reference, Filter::LabelDir(LABEL))
            .await;
        assert_eq!(by_tag.is_ok(), expected, "{pull}");
        puller.forget("owner").await.unwrap();
        let by_digest = puller
            .fetch("owner", &unpacked.reference, Filter::LabelDir(LABEL))
            .await;
        assert_eq!(by_digest.is_ok(), !expected, "{pull}");
    }

    // The files are read again at each pull.
    fixture.registries("[[registry]]\nlocation = \"registry.invalid\"\nblocked = true\n");
    let error = puller.resolve(&reference).await.unwrap_err();
    assert!(matches!(error, Error::Blocked { .. }), "{}", error.message());
    fixture.registries("");
    let error = puller.resolve(&reference).await.unwrap_err();
    assert!(matches!(
        cause(error),
        RegistryError::Dns { .. } | RegistryError::Timeout { .. }
    ));
    fixture.registries("[[registry");
    assert!(matches!(
        puller.resolve(&reference).await.unwrap_err(),
        Error::Registries(_)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_and_credentials() {
    let options = RegistryOptions {
        tls: true,
        htpasswd: Some(HTPASSWD.to_owned()),
        ..RegistryOptions::default()
    };
    let registry = Registry::start_with(options).await.unwrap();
    catalog()
        .auth("user", "secret")
        .push(&registry, "ns/catalog:v1")
        .await
        .unwrap();
    let mut fixture = Fixture::new(&registry);
    fixture.config.plain_http.clear();
    let reference = tagged(&registry, "ns/catalog:v1");

    let error = fixture.puller().resolve(&reference).await.unwrap_err();
    assert!(matches!(cause(error), RegistryError::Tls { .. }));

    let authorities = fixture.cache.path().join("ca");
    fs::create_dir(&authorities).unwrap();
    fs::write(authorities.join("ca.crt"), registry.ca_pem().unwrap()).unwrap();
    fixture.config.ca_dir = Some(authorities);
    let error = fixture.puller().resolve(&reference).await.unwrap_err();
    assert!(matches!(
        cause(error),
        RegistryError::Unauthorized { offered: false, .. }
    ));

    let file = fixture.cache.path().join("auth.json");
    fixture.config.auth_file = Some(file.clone());
    let credentials = |host: &str, password: &str| {
        let text = format!(r#"{{"auths":{{"{host}":{{"username":"user","password":"{password}"}}}}}}"#);
        fs::write(&file, text).unwrap();
    };
    let puller = fixture.puller();
    credentials("other.example", "secret");
    assert!(matches!(
        cause(puller.resolve(&reference).await.unwrap_err()),
        RegistryError::Unauthorized { offered: false, .. }
    ));
    credentials(&registry.host(), "wrong");
    assert!(matches!(
        cause(puller.resolve(&reference).await.unwrap_err()),
        RegistryError::Unauthorized { offered: true, .. }
    ));
    credentials(&registry.host(), "secret");
    fetch(&puller, &reference, Filter::LabelDir(LABEL)).await.unwrap();

    // An insecure registry needs no authority.
    fixture.config.ca_dir = None;
    fixture.registries(&format!(
        "[[registry]]\nlocation = \"{}\"\ninsecure = true\n",
        registry.host()
    ));
    fixture.puller().resolve(&reference).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn content_with_a_wrong_digest_is_refused() {
    let registry = Registry::start().await.unwrap();
    catalog().push(&registry, "ns/catalog:v1").await.unwrap();
    let fixture = Fixture::new(&registry);
    let wrong: CanonicalRef = format!("{}/ns/catalog@sha256:{}", registry.host(), "0".repeat(64))
        .parse()
        .unwrap();
    let error = fixture
        .puller()
        .fetch("owner", &wrong, Filter::All)
        .await
        .unwrap_err();
    assert!(matches!(cause(error), RegistryError::NotFound { .. }));
}
