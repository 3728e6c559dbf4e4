//! Labels, annotations, finalizers, field managers and type keys that OLM writes or reads on objects. Objects on
//! clusters have them, so none may change.

/// Label of a ClusterCatalog: its own name, so that selectors can name catalogs.
pub const METADATA_NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";
/// The kind that owns an object: [`OWNER_KIND_CLUSTER_EXTENSION`].
pub const OWNER_KIND_LABEL: &str = "olm.operatorframework.io/owner-kind";
/// Value of [`OWNER_KIND_LABEL`] on objects of a ClusterExtension.
pub const OWNER_KIND_CLUSTER_EXTENSION: &str = "ClusterExtension";
/// The name of the ClusterExtension an object belongs to.
pub const OWNER_NAME_LABEL: &str = "olm.operatorframework.io/owner-name";
/// Label of Secrets that hold large objects: name of their ClusterObjectSet.
pub const REVISION_NAME_LABEL: &str = "olm.operatorframework.io/revision-name";
/// `"true"` on a ClusterObjectSet that took over a Helm release.
pub const MIGRATED_FROM_HELM_LABEL: &str = "olm.operatorframework.io/migrated-from-helm";
/// The usual label that names the tool an object is managed by.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`] on every applied object.
pub const MANAGED_BY_VALUE: &str = "olm.operatorframework.io";

/// Name of the service account a revision is applied and deleted with; without it, the controller's own identity.
pub const SERVICE_ACCOUNT_NAME_ANNOTATION: &str = "olm.operatorframework.io/service-account-name";
/// Namespace of that service account.
pub const SERVICE_ACCOUNT_NAMESPACE_ANNOTATION: &str = "olm.operatorframework.io/service-account-namespace";
/// Number of the revision that applied an object last.
pub const REVISION_ANNOTATION: &str = "olm.operatorframework.io/revision";
/// Name of the bundle of a revision.
pub const BUNDLE_NAME_ANNOTATION: &str = "olm.operatorframework.io/bundle-name";
/// Package of the bundle.
pub const PACKAGE_NAME_ANNOTATION: &str = "olm.operatorframework.io/package-name";
/// Version of the bundle.
pub const BUNDLE_VERSION_ANNOTATION: &str = "olm.operatorframework.io/bundle-version";
/// Image reference of the bundle.
pub const BUNDLE_REFERENCE_ANNOTATION: &str = "olm.operatorframework.io/bundle-reference";
/// Release of the bundle; present, but maybe empty, only if the bundle declares one.
pub const BUNDLE_RELEASE_ANNOTATION: &str = "olm.operatorframework.io/bundle-release";
/// The bundle's properties as a JSON array, copied from its ClusterServiceVersion.
pub const PROPERTIES_ANNOTATION: &str = "olm.properties";

/// Finalizer of a ClusterObjectSet until its objects are gone or handed over.
pub const TEARDOWN_FINALIZER: &str = "olm.operatorframework.io/teardown";
/// Finalizer of a ClusterExtension until its unpacked bundle is gone from the cache.
pub const CLEANUP_UNPACK_FINALIZER: &str = "olm.operatorframework.io/cleanup-unpack-cache";
/// Finalizer of a ClusterExtension until the watches of its content are gone.
pub const CLEANUP_CONTENT_FINALIZER: &str = "olm.operatorframework.io/cleanup-contentmanager-cache";
/// Finalizer of a ClusterCatalog until its content is no longer served.
pub const CATALOG_FINALIZER: &str = "olm.operatorframework.io/delete-server-cache";

/// Field manager of the objects of a bundle, and of status.
pub const OBJECT_FIELD_MANAGER: &str = "olm.operatorframework.io";
/// Field manager of the revisions of a ClusterExtension.
pub const EXTENSION_FIELD_MANAGER: &str = "olm.operatorframework.io/clusterextension-controller";

/// Type of the Secrets that hold large objects of a revision.
pub const OBJECT_DATA_SECRET_TYPE: &str = "olm.operatorframework.io/object-data";
/// Type of the index Secret of a chunked Helm release.
pub const RELEASE_INDEX_SECRET_TYPE: &str = "operatorframework.io/index.v1";
/// Type of a chunk Secret of a chunked Helm release.
pub const RELEASE_CHUNK_SECRET_TYPE: &str = "operatorframework.io/chunk.v1";

/// Image label of a catalog: the directory of its file-based catalog.
pub const CATALOG_CONFIGS_IMAGE_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// Annotation of a revision: the bundle's properties in its catalog, as JSON.
pub const CATALOG_PROPERTIES_ANNOTATION: &str = "olm.operatorframework.io/catalog-properties";

/// Annotation of a CRD whose deletion was stuck and that was touched to make the API server retry: time of the touch
/// (RFC 3339).
pub const DELETION_RECALLED_ANNOTATION: &str = "olm.operatorframework.io/deletion-recalled";

/// Returns the selector of the objects of one ClusterExtension, or of any.
#[must_use]
pub fn selector_of_extension(name: Option<&str>) -> String {
    let any = format!("{OWNER_KIND_LABEL}={OWNER_KIND_CLUSTER_EXTENSION}");
    match name {
        Some(name) => format!("{any},{OWNER_NAME_LABEL}={name}"),
        None => any,
    }
}
