//! The cluster: its `ClusterCatalog`s, its extensions, and the API server's proxy to catalogd.

use std::fs::File;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::AsyncReadExt as _;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use olm_api::names::Segment;
use olm_api::{AvailabilityMode, ClusterCatalog, ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_catalog_client::CatalogRef;
use olm_resolve::Installed;
use olm_runtime::client::is_absent;
use olm_text::dns::is_label;
use url::Url;

use super::served::{Authorities, Direct, Served, Spool};
use super::{Catalog, Place, SourceError};
use crate::cli::AccessArgs;

const CONNECT: Duration = Duration::from_secs(10);
/// Time limit of one API call.
const CALL: Duration = Duration::from_secs(30);
/// Time limit of one answer of catalogd.
const DOWNLOAD: Duration = Duration::from_mins(5);
/// catalogd's Service, unless a catalog's URL names another.
const SERVICE: &str = "catalogd-service";
/// The catalog that the controller remembers on a revision.
pub(crate) const CATALOG_ANNOTATION: &str = "olm.operatorframework.io/catalog-name";

/// A cluster to ask. Only reads.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    system_namespace: String,
    ca_pem: Option<String>,
}

impl Cluster {
    /// Reads the kubeconfig. Nothing is sent yet.
    ///
    /// # Errors
    /// There is no usable kubeconfig.
    pub(crate) async fn connect(access: &AccessArgs) -> Result<Self, SourceError> {
        let options = KubeConfigOptions {
            context: access.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &access.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).map_err(no_kubeconfig)?;
                Config::from_custom_kubeconfig(file, &options)
                    .await
                    .map_err(no_kubeconfig)
            }
            None if access.context.is_some() => {
                Config::from_kubeconfig(&options).await.map_err(no_kubeconfig)
            }
            None => Config::infer().await.map_err(no_kubeconfig),
        };
        let mut config = config?;
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(CALL);
        config.write_timeout = Some(CALL);
        let ca_pem = match &access.ca_file {
            None => None,
            Some(path) => Some(std::fs::read_to_string(path).map_err(|source| SourceError::Read {
                path: path.clone(),
                source,
            })?),
        };
        Ok(Self {
            client: Client::try_from(config).map_err(no_kubeconfig)?,
            system_namespace: access.system_namespace.clone(),
            ca_pem,
        })
    }

    /// The API server.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Namespace of the controllers.
    pub(super) fn system_namespace(&self) -> &str {
        &self.system_namespace
    }

    /// The custom resource definition of this name, as it is stored; `None` when there is none.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub(crate) async fn crd(&self, name: &str) -> Result<Option<serde_json::Value>, SourceError> {
        let kind = kube::discovery::ApiResource::from_gvk_with_plural(
            &kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            "customresourcedefinitions",
        );
        let api: Api<kube::core::DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let Ok(segment) = Segment::new(name) else {
            return Ok(None);
        };
        let found = call("reading a CustomResourceDefinition", api.get_opt(&segment)).await?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    /// The `ClusterCatalog`s that are not made unavailable.
    ///
    /// # Errors
    /// They cannot be listed.
    pub(crate) async fn catalogs(&self) -> Result<Vec<Catalog>, SourceError> {
        let api: Api<ClusterCatalog> = Api::all(self.client.clone());
        let list = call("listing the ClusterCatalogs", api.list(&ListParams::default())).await?;
        let proxy = Arc::new(Proxy {
            client: self.client.clone(),
            namespace: self.system_namespace.clone(),
        });
        let direct = Direct::new(match &self.ca_pem {
            Some(pem) => Authorities::Given(Some(pem.clone())),
            None => Authorities::Secret(proxy.clone()),
        });
        let available = list
            .items
            .into_iter()
            .filter(|catalog| catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable));
        Ok(available
            .map(|catalog| {
                let place = match reference(&catalog) {
                    Some(reference) => Place::Served(Box::new(Served::of_cluster(
                        reference,
                        direct.clone(),
                        proxy.clone(),
                    ))),
                    None => Place::NotServing,
                };
                Catalog {
                    name: catalog.name_any(),
                    priority: catalog.spec.priority.unwrap_or_default(),
                    labels: catalog.labels().clone(),
                    place,
                }
            })
            .collect())
    }

    /// The extension of a name, and what is installed for it: the newest revision that has rolled out, else
    /// what its status says. None when there is no such extension.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) async fn extension(
        &self,
        name: &str,
    ) -> Result<Option<(ClusterExtension, Option<Installed>)>, SourceError> {
        let api: Api<ClusterExtension> = Api::all(self.client.clone());
        let what = format!("reading ClusterExtension \"{name}\"");
        let Ok(segment) = Segment::new(name) else {
            return Ok(None);
        };
        let Some(extension) = call(&what, api.get_opt(&segment)).await? else {
            return Ok(None);
        };
        let revisions: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let selector = keys::selector_of_extension(Some(name));
        let what = format!("listing the ClusterObjectSets of ClusterExtension \"{name}\"");
        let list = call(&what, revisions.list(&ListParams::default().labels(&selector))).await?;
        let installed = list
            .items
            .iter()
            .filter(|revision| counts(revision))
            .max_by_key(|revision| revision.spec.revision)
            .map(of_revision)
            .or_else(|| of_status(&extension));
        Ok(Some((extension, installed)))
    }
}

pub(super) fn counts(revision: &ClusterObjectSet) -> bool {
    let succeeded = revision
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Succeeded" && condition.status == "True");
    succeeded
        && revision.spec.lifecycle_state != LifecycleState::Archived
        && revision.metadata.deletion_timestamp.is_none()
}

fn of_revision(revision: &ClusterObjectSet) -> Installed {
    let annotation = |key: &str| revision.annotations().get(key).cloned();
    Installed {
        name: annotation(keys::BUNDLE_NAME_ANNOTATION).unwrap_or_default(),
        version: annotation(keys::BUNDLE_VERSION_ANNOTATION).unwrap_or_default(),
        release: annotation(keys::BUNDLE_RELEASE_ANNOTATION),
        catalog: annotation(CATALOG_ANNOTATION),
    }
}

fn of_status(extension: &ClusterExtension) -> Option<Installed> {
    let bundle = &extension.status.as_ref()?.install.as_ref()?.bundle;
    Some(Installed {
        name: bundle.name.clone(),
        version: bundle.version.clone(),
        release: bundle.release.clone(),
        catalog: None,
    })
}

/// Returns the address of the catalog's current content; none if the catalog is not being served.
fn reference(catalog: &ClusterCatalog) -> Option<CatalogRef> {
    let status = catalog.status.as_ref()?;
    let serving = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Serving" && condition.status == "True");
    let source = status.resolved_source.as_ref().filter(|_| serving)?;
    Some(CatalogRef {
        name: catalog.name_any(),
        base_url: status.urls.as_ref()?.base.clone(),
        digest: source.image.ref_.clone(),
    })
}

/// The API server's proxy to catalogd's Service.
pub(super) struct Proxy {
    client: Client,
    namespace: String,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// catalogd's own authorities; none when the Secret is absent or may not be read.
    pub(super) async fn own_ca(&self) -> Result<Option<String>, SourceError> {
        let asked = olm_runtime::tls::own_ca(&self.client, &self.namespace);
        match tokio::time::timeout(CALL, asked).await {
            Ok(Ok(pem)) => Ok(pem),
            // The system's authorities may do; if not, the TLS failure says so.
            Ok(Err(error)) => {
                tracing::debug!(%error, "catalogd's own authorities cannot be read");
                Ok(None)
            }
            Err(_) => Err(SourceError::Slow {
                what: "reading catalogd's own authorities".to_owned(),
            }),
        }
    }

    /// Asks for what is at `url`, which names catalogd's Service by its address inside the cluster.
    pub(super) async fn download(
        &self,
        catalog: &str,
        url: &Url,
        endpoint: &str,
        limit: u64,
    ) -> Result<File, SourceError> {
        let what = format!("asking catalogd for catalog \"{catalog}\" through the API server");
        let request = http::Request::get(self.path(url)).body(Vec::new());
        let failed = |error| match error {
            kube::Error::Api(status) if is_catalogds(&status) => SourceError::NotThere {
                catalog: catalog.to_owned(),
                endpoint: endpoint.to_owned(),
            },
            error => SourceError::Cluster {
                what: what.clone(),
                source: Box::new(error),
            },
        };
        let request = request.map_err(|_| SourceError::Url { url: url.to_string() })?;
        let work = async {
            let mut stream = Box::pin(self.client.request_stream(request).await.map_err(failed)?);
            let mut spool = Spool::new(catalog, limit)?;
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = stream
                    .read(&mut buffer)
                    .await
                    .map_err(|error| SourceError::Http {
                        url: url.to_string(),
                        cause: error.to_string(),
                    })?;
                match buffer.get(..count) {
                    Some(bytes) if count > 0 => spool.write(bytes)?,
                    _ => return spool.finish(),
                }
            }
        };
        let done = tokio::time::timeout(DOWNLOAD, work).await;
        done.map_err(|_| SourceError::Slow { what: what.clone() })?
    }

    fn path(&self, url: &Url) -> String {
        // SERVICE.NAMESPACE.svc, as catalogd writes its own address.
        let mut labels = url.host_str().unwrap_or_default().split('.');
        let (service, namespace) = match (labels.next(), labels.next(), labels.next()) {
            (Some(service), Some(namespace), Some("svc")) if is_label(service) && is_label(namespace) => {
                (service, namespace)
            }
            _ => (SERVICE, self.namespace.as_str()),
        };
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!(
            "/api/v1/namespaces/{namespace}/services/{scheme}:{service}:{port}/proxy{path}{query}",
            scheme = url.scheme(),
            port = if namespace == self.namespace && service == SERVICE {
                443
            } else {
                url.port_or_known_default().unwrap_or(443)
            },
            path = url.path(),
        )
    }
}

/// Reports whether "not found" or "bad request" is catalogd's own answer: the API server's own are structured.
fn is_catalogds(status: &kube::core::Status) -> bool {
    matches!(status.code, 400 | 404 | 405 | 501) && status.details.is_none() && status.reason != "NotFound"
}

pub(super) async fn call<T>(
    what: &str,
    work: impl Future<Output = kube::Result<T>>,
) -> Result<T, SourceError> {
    match tokio::time::timeout(CALL, work).await {
        Ok(done) => done.map_err(|source| SourceError::Cluster {
            what: what.to_owned(),
            source: Box::new(source),
        }),
        Err(_) => Err(SourceError::Slow {
            what: what.to_owned(),
        }),
    }
}

/// Like [`call`], for objects that may be absent.
pub(super) async fn find<T>(
    what: &str,
    work: impl Future<Output = kube::Result<Option<T>>>,
) -> Result<Option<T>, SourceError> {
    match call(what, work).await {
        Err(SourceError::Cluster { source, .. }) if is_absent(&source) => Ok(None),
        found => found,
    }
}

fn no_kubeconfig(error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    SourceError::Kubeconfig {
        offline: false,
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str) -> Proxy {
        olm_runtime::tls::install_provider();
        Proxy {
            client: Client::try_from(Config::new(server.parse().unwrap())).unwrap(),
            namespace: "olmv1-system".to_owned(),
        }
    }

    /// The API server's proxy never leads to a loopback address, so a server with its paths and errors stands
    /// in for it.
    #[tokio::test]
    async fn answers_and_errors_of_the_proxy() {
        use axum::http::StatusCode;
        use std::io::Read as _;

        let service = "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy";
        let not_found = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"message":"services \"x\" not found"}"#;
        let app = axum::Router::new()
            .route(
                &format!("{service}/catalogs/c/api/v1/metas"),
                axum::routing::get(async |uri: http::Uri| uri.query().unwrap_or_default().to_owned()),
            )
            .route(
                &format!("{service}/catalogs/c/api/v1/all"),
                axum::routing::get(async || (StatusCode::NOT_FOUND, "404 page not found")),
            )
            .fallback(async move || (StatusCode::NOT_FOUND, not_found));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = proxy(&format!("http://{}", listener.local_addr().unwrap()));
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let ask = async |path: &str, limit: u64| {
            let url = Url::parse(&format!("https://catalogd-service.olmv1-system.svc/{path}")).unwrap();
            proxy.download("c", &url, "metas", limit).await
        };
        let mut text = String::new();
        let mut file = ask("catalogs/c/api/v1/metas?package=a%26b", 100).await.unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "package=a%26b");
        let too_long = ask("catalogs/c/api/v1/metas?package=p", 3).await;
        assert!(
            matches!(too_long, Err(SourceError::TooLong { .. })),
            "{too_long:?}"
        );
        let not_there = ask("catalogs/c/api/v1/all", 100).await;
        assert!(
            matches!(not_there, Err(SourceError::NotThere { .. })),
            "{not_there:?}"
        );
        // No such Service: the way itself does not work.
        let no_way = ask("elsewhere", 100).await;
        assert!(matches!(no_way, Err(SourceError::Cluster { .. })), "{no_way:?}");
        server.abort();
    }

    #[tokio::test]
    async fn the_proxys_path() {
        let proxy = proxy("http://127.0.0.1:1");
        let path = |url: &str| proxy.path(&Url::parse(url).unwrap());
        assert_eq!(
            path("https://catalogd-service.olmv1-system.svc/catalogs/c/api/v1/metas?package=p"),
            "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/c/api/v1/metas?package=p"
        );
        assert_eq!(
            path("https://127.0.0.1:9443/catalogs/c/api/v1/all"),
            "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/c/api/v1/all"
        );
        assert_eq!(
            path("http://other.elsewhere.svc:8080/catalogs/c/api/v1/all"),
            "/api/v1/namespaces/elsewhere/services/http:other:8080/proxy/catalogs/c/api/v1/all"
        );
    }
}
