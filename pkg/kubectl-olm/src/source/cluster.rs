//! The cluster: its `ClusterCatalog`s, its extensions, and the API server's proxy to catalogd.

use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client, Config, ResourceExt as _};
use olm_api::condition::{is_true, types};
use olm_api::names::Segment;
use olm_api::{AvailabilityMode, ClusterCatalog, ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_applier::namespaces;
use olm_catalog_client::CatalogRef;
use olm_resolve::Installed;
use olm_runtime::client::{ConfigError, connect};
use olm_status::recorded::bundle_version;
use olm_text::name::CatalogName;
use olm_version::BundleVersion;
use serde_json::Value;

use super::bearer::Bearer;
use super::call::{CALL_TIMEOUT, call};
use super::catalog::{Catalog, Location};
use super::error::SourceError;
use super::proxy::Proxy;
use super::served::{Authorities, Direct, ServedCatalog};
use crate::cli::AccessArgs;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Access to a cluster with the rights of a user. What it reads and writes is in the modules beside this one.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    proxy: Arc<Proxy>,
    system_namespace: String,
    content: Content,
}

/// Way to the content of the catalogs.
#[derive(Clone)]
pub(super) enum Content {
    /// The API server's proxy, or catalogd's own address with these authorities (PEM), or those of its Secret.
    OfUser(Option<String>),
    /// catalogd's own address, for a reader who is permitted to read there.
    OfBearer(Arc<Bearer>),
}

impl Cluster {
    pub(super) fn new(client: Client, proxy: Proxy, system_namespace: String, content: Content) -> Self {
        Self {
            client,
            proxy: Arc::new(proxy),
            system_namespace,
            content,
        }
    }

    /// Reads the kubeconfig without sending a request.
    ///
    /// # Errors
    /// There is no usable kubeconfig.
    pub(crate) async fn connect(access: &AccessArgs) -> Result<Self, SourceError> {
        let config = Self::config(access)?;
        let ca_pem = match &access.ca_file {
            None => None,
            Some(path) => {
                let read = tokio::fs::read_to_string(path).await;
                Some(read.map_err(|source| SourceError::Read {
                    path: path.clone(),
                    source,
                })?)
            }
        };
        let client = connect(config.clone()).map_err(no_kubeconfig)?;
        let proxy = Proxy::new(client.clone(), config, access.system_namespace.clone());
        Ok(Self::new(
            client,
            proxy.map_err(no_kubeconfig)?,
            access.system_namespace.clone(),
            Content::OfUser(ca_pem),
        ))
    }

    /// Returns the configuration of the kubeconfig, or of the pod, with time limits.
    ///
    /// # Errors
    /// There is no usable kubeconfig.
    pub(crate) fn config(access: &AccessArgs) -> Result<Config, SourceError> {
        let loaded = olm_runtime::client::load(access.kubeconfig.as_deref(), access.context.as_deref());
        let mut config = loaded.map_err(|error| match error {
            ConfigError::Proxy(error) => SourceError::Proxy(error),
            error => no_kubeconfig(error),
        })?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(CALL_TIMEOUT);
        config.write_timeout = Some(CALL_TIMEOUT);
        Ok(config)
    }

    /// Returns a cluster that does not exist.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        olm_runtime::tls::install_provider();
        let config = Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        let proxy = connect(config.clone())
            .and_then(|client| Proxy::new(client, config.clone(), "olmv1-system".to_owned()));
        let (Ok(client), Ok(proxy)) = (connect(config), proxy) else {
            unreachable!("the address is sound")
        };
        Self::new(client, proxy, "olmv1-system".to_owned(), Content::OfUser(None))
    }

    /// Returns the API server's proxy.
    pub(super) fn proxy(&self) -> &Arc<Proxy> {
        &self.proxy
    }

    /// Returns the client of the API server.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the namespace of the controllers.
    pub(super) fn system_namespace(&self) -> &str {
        &self.system_namespace
    }

    /// Returns the CRD of this name; `None` if it does not exist.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn crd(&self, name: &str) -> Result<Option<Value>, SourceError> {
        let found = self.crd_object(name).await?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    /// Variant of [`Cluster::crd`] that returns the object as read.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn crd_object(
        &self,
        name: &str,
    ) -> Result<Option<kube::core::DynamicObject>, SourceError> {
        let kind = kube::discovery::ApiResource::from_gvk_with_plural(
            &kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            "customresourcedefinitions",
        );
        let api: Api<kube::core::DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let Ok(segment) = Segment::new(name) else {
            return Ok(None);
        };
        call("reading a CustomResourceDefinition", api.get_opt(&segment)).await
    }

    /// Lists the objects of all catalogs.
    ///
    /// # Errors
    /// The list fails.
    pub(crate) async fn cluster_catalogs(&self) -> Result<Vec<ClusterCatalog>, SourceError> {
        let api: Api<ClusterCatalog> = Api::all(self.client.clone());
        let list = call("listing the ClusterCatalogs", api.list(&ListParams::default())).await?;
        Ok(list.items)
    }

    /// Returns the namespaces that a configuration (`spec.config.inline`) selects by labels; none if it does not.
    ///
    /// # Errors
    /// The list fails.
    pub(crate) async fn selected_namespaces(
        &self,
        config: Option<&Value>,
    ) -> Result<Option<Vec<String>>, SourceError> {
        let Some(selector) = config.and_then(namespaces::selector) else {
            return Ok(None);
        };
        let listing = namespaces::selected(self.client.clone(), &selector);
        let names = call("listing the namespaces of watchNamespaceSelector", listing).await?;
        Ok(Some(names.into_iter().collect()))
    }

    /// Returns the object of a catalog; none if it does not exist.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn catalog(&self, name: &str) -> Result<Option<ClusterCatalog>, SourceError> {
        let api: Api<ClusterCatalog> = Api::all(self.client.clone());
        let Ok(segment) = Segment::new(name) else {
            return Ok(None);
        };
        call(
            &format!("reading ClusterCatalog \"{name}\""),
            api.get_opt(&segment),
        )
        .await
    }

    /// Returns the `ClusterCatalog`s, except those with availability mode `Unavailable`.
    ///
    /// # Errors
    /// The list fails.
    pub(crate) async fn catalogs(&self) -> Result<Vec<Catalog>, SourceError> {
        let list = self.cluster_catalogs().await?;
        let direct = match &self.content {
            Content::OfUser(Some(pem)) => Direct::new(Authorities::Given(Some(pem.clone()))),
            Content::OfUser(None) => Direct::new(Authorities::Secret(self.proxy().clone())),
            Content::OfBearer(bearer) => bearer.direct(),
        };
        let available = list
            .into_iter()
            .filter(|catalog| catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable));
        let mut catalogs = Vec::new();
        for catalog in available {
            catalogs.push(Catalog {
                name: catalog.name_any().into(),
                priority: catalog.spec.priority.unwrap_or_default(),
                labels: catalog.labels().clone(),
                location: self.location(&catalog, &direct).await,
            });
        }
        Ok(catalogs)
    }

    async fn location(&self, catalog: &ClusterCatalog, direct: &Arc<Direct>) -> Location {
        let Some(reference) = reference(catalog) else {
            return Location::NotServing;
        };
        match &self.content {
            Content::OfUser(_) => Location::Served(Box::new(ServedCatalog::of_cluster(
                reference,
                direct.clone(),
                self.proxy().clone(),
            ))),
            Content::OfBearer(bearer) => bearer.location(reference, direct.clone()).await,
        }
    }

    /// Returns the resolved image of a catalog's content; none if the catalog is absent or not resolved.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn catalog_digest(&self, name: &CatalogName) -> Result<Option<String>, SourceError> {
        let api: Api<ClusterCatalog> = Api::all(self.client.clone());
        let Ok(segment) = Segment::new(name.as_str()) else {
            return Ok(None);
        };
        let found = call("reading a ClusterCatalog", api.get_opt(&segment)).await?;
        Ok(found
            .and_then(|catalog| catalog.status?.resolved_source)
            .map(|source| source.image.ref_))
    }

    /// Returns an extension with its installed bundle: that of the newest revision that has rolled out, else that of
    /// the status. None if the extension does not exist.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn extension(
        &self,
        name: &str,
    ) -> Result<Option<(ClusterExtension, Option<Installed>)>, SourceError> {
        let Some(extension) = self.one_extension(name).await? else {
            return Ok(None);
        };
        let installed = self.installed(&extension).await?;
        Ok(Some((extension, installed)))
    }

    /// Returns the installed bundle of an extension: that of the newest revision that has rolled out, else that of the status.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn installed(
        &self,
        extension: &ClusterExtension,
    ) -> Result<Option<Installed>, SourceError> {
        let revisions = self.revisions(Some(&extension.name_any())).await?;
        let installed = revisions
            .iter()
            .filter(|revision| is_installed(revision))
            .max_by_key(|revision| revision.spec.revision)
            .map(of_revision)
            .or_else(|| of_status(extension));
        Ok(installed)
    }
}

/// Returns true if the revision has rolled out and is kept up.
pub(crate) fn is_installed(revision: &ClusterObjectSet) -> bool {
    is_true(revision.conditions(), types::ObjectSet::Succeeded)
        && revision.spec.lifecycle_state != LifecycleState::Archived
        && revision.metadata.deletion_timestamp.is_none()
}

fn of_revision(revision: &ClusterObjectSet) -> Installed {
    let annotation = |key: &str| revision.annotations().get(key).cloned();
    Installed {
        name: annotation(keys::BUNDLE_NAME_ANNOTATION)
            .unwrap_or_default()
            .into(),
        version: bundle_version(revision),
        catalog: annotation(keys::CATALOG_NAME_ANNOTATION).map(CatalogName::from),
    }
}

fn of_status(extension: &ClusterExtension) -> Option<Installed> {
    let bundle = &extension.status.as_ref()?.install.as_ref()?.bundle;
    Some(Installed {
        name: bundle.name.as_str().into(),
        version: BundleVersion::recorded(bundle.version.as_str(), bundle.release.clone()),
        catalog: None,
    })
}

/// Returns the address of the catalog's current content; none if the catalog is not being served.
fn reference(catalog: &ClusterCatalog) -> Option<CatalogRef> {
    let status = catalog.status.as_ref()?;
    let serving = is_true(catalog.conditions(), types::Catalog::Serving);
    let source = status.resolved_source.as_ref().filter(|_| serving)?;
    Some(CatalogRef {
        name: catalog.name_any().into(),
        base_url: status.urls.as_ref()?.base.clone(),
        digest: source.image.ref_.clone(),
    })
}

fn no_kubeconfig(error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    SourceError::Kubeconfig {
        offline: false,
        source: Box::new(error),
    }
}
