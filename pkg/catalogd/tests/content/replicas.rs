//! The client of operator-controller, with replicas behind one address that serve different content.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::Router;
use olm_catalog_client::{CatalogClient, CatalogRef, ClientError, PackageAnswer, Trust};
use olm_catalogd::{
    server::{Metrics, Options, router_with, serve},
    storage::{Origin, Store, ValidCatalogName},
};
use olm_harness::pki::Authority;
use olm_runtime::serve::Limits;
use olm_runtime::tls::ServingCert;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Returns the digest of the image with this number.
fn digest(number: u32) -> String {
    format!("sha256:{number:064x}")
}

/// Makes `store` serve a package with version `1.0.<number>`, from the image with this number.
fn publish(store: &Store, folder: &Path, number: u32) {
    let source = folder.join(format!("source-{number}"));
    std::fs::create_dir_all(&source).unwrap();
    let text = format!(
        r#"{{"schema":"olm.package","name":"app"}}
{{"schema":"olm.bundle","package":"app","name":"app.v1.0.{number}","image":"a/app:1","properties":[{{"type":"olm.package","value":{{"packageName":"app","version":"1.0.{number}"}}}}]}}
"#
    );
    std::fs::write(source.join("catalog.json"), text).unwrap();
    let origin = Origin {
        requested: "registry.example/catalog:v1".to_owned(),
        resolved: format!("registry.example/catalog@{}", digest(number)),
        unpacked_at: 1,
        verified: None,
    };
    let name = ValidCatalogName::new("cat").unwrap();
    store.store(&name, &source, origin, 1, &|| false).unwrap();
}

/// Two replicas behind one address that forwards each new connection to the next replica.
struct Replicas {
    stores: [Arc<Store>; 2],
    client: CatalogClient,
    port: u16,
    connections: Arc<AtomicUsize>,
    folder: tempfile::TempDir,
    shutdown: CancellationToken,
}

impl Replicas {
    async fn start() -> Self {
        olm_runtime::tls::install_provider();
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("replicas").unwrap();
        let pair = authority.server(&["127.0.0.1"]).unwrap();
        let shutdown = CancellationToken::new();
        let (mut stores, mut ports) = (Vec::new(), Vec::new());
        for replica in ["a", "b"] {
            let store = Arc::new(Store::open(folder.path().join(replica)).unwrap());
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            ports.push(listener.local_addr().unwrap().port());
            let router = router(store.clone());
            let certificate = ServingCert::fixed(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap();
            let ending = shutdown.clone();
            tokio::spawn(async move {
                serve(listener, router, &certificate, Limits::DEFAULT, ending)
                    .await
                    .unwrap();
            });
            stores.push(store);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        tokio::spawn(lead(listener, ports, connections.clone()));
        let pem = authority.pem();
        let trust = Trust::provider(move || {
            let pem = pem.clone();
            async move { Ok(Some(pem)) }
        });
        Self {
            stores: stores.try_into().unwrap(),
            client: CatalogClient::new(trust),
            port,
            connections,
            folder,
            shutdown,
        }
    }

    fn publish(&self, replica: usize, number: u32) {
        publish(&self.stores[replica], self.folder.path(), number);
    }

    /// Reads the package of a catalog whose status names the image with this number.
    async fn read(&self, number: u32) -> Result<PackageAnswer, ClientError> {
        let catalog = CatalogRef {
            name: "cat".into(),
            base_url: format!("https://127.0.0.1:{}/catalogs/cat", self.port),
            digest: format!("registry.example/catalog@{}", digest(number)),
        };
        self.client.package(&catalog, &"app".into()).await
    }

    fn connections(&self) -> usize {
        self.connections.swap(0, Ordering::SeqCst)
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn router(store: Arc<Store>) -> Router {
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    router_with(store, metrics, &Options::default())
}

async fn lead(listener: TcpListener, ports: Vec<u16>, connections: Arc<AtomicUsize>) {
    for port in ports.iter().cycle() {
        let (mut from, _) = listener.accept().await.unwrap();
        connections.fetch_add(1, Ordering::SeqCst);
        let mut to = TcpStream::connect(("127.0.0.1", *port)).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
    }
}

fn bundle(answer: &PackageAnswer) -> &str {
    &answer.content.as_ref().unwrap().bundles[0].name
}

#[tokio::test(flavor = "multi_thread")]
async fn content_of_a_replica_that_is_behind_is_never_taken_for_the_present_one() {
    let replicas = Replicas::start().await;
    for replica in 0..2 {
        replicas.publish(replica, 1);
    }
    assert_eq!(bundle(&replicas.read(1).await.unwrap()), "app.v1.0.1");
    assert_eq!(replicas.connections(), 1);

    // The open connection leads to a replica that cannot pull the next image.
    replicas.publish(1, 2);
    let answer = replicas.read(2).await.unwrap();
    assert_eq!((bundle(&answer), answer.former.as_ref()), ("app.v1.0.2", None));
    assert_eq!(
        replicas.connections(),
        1,
        "one new connection reaches the other replica"
    );

    // From then on the client asks the replica with the content, over the open connection.
    replicas.publish(1, 3);
    assert_eq!(bundle(&replicas.read(3).await.unwrap()), "app.v1.0.3");
    assert_eq!(replicas.connections(), 0);

    // No replica has the image yet: the former content stands in, and the failure keeps its retry time.
    let former = replicas.read(4).await.unwrap();
    assert_eq!(bundle(&former), "app.v1.0.3");
    let (why, since) = former.former.map(|former| (former.why, former.since)).unwrap();
    assert_eq!(
        why,
        format!(
            "catalogd does not yet serve catalog \"cat\" from image digest {}, which its status names",
            digest(4)
        )
    );
    assert_eq!(replicas.connections(), 3, "each try has a limit");
    let again = replicas.read(4).await.unwrap().former.unwrap();
    assert_eq!(again.since, since);

    // The client reads the content as soon as one replica has it: the stand-in was not cached as current.
    replicas.publish(0, 4);
    let answer = replicas.read(4).await.unwrap();
    assert_eq!((bundle(&answer), answer.former.as_ref()), ("app.v1.0.4", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_content_is_no_reason_to_wait_for_the_other() {
    let replicas = Replicas::start().await;
    replicas.publish(1, 1);
    assert_eq!(bundle(&replicas.read(1).await.unwrap()), "app.v1.0.1");
    assert_eq!(replicas.connections(), 2);
    // Nothing was read before, so no former content stands in.
    replicas.client.forget(&"cat".into());
    let error = replicas.read(2).await.unwrap_err();
    let absent = matches!(
        error,
        ClientError::NoContent { .. } | ClientError::Outdated { .. }
    );
    assert!(absent, "{}", error.message());
}
