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
/// Field manager of the verdict on upgrades of OpenShift.
pub const CLUSTER_UPGRADE_FIELD_MANAGER: &str = "olm.operatorframework.io/cluster-upgrade";

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

/// Annotation of a revision: install namespace, if the revision itself has the Namespace because the spec names none.
pub const INSTALL_NAMESPACE_ANNOTATION: &str = "olm.operatorframework.io/install-namespace";
/// Annotation of a revision: the namespaces that `watchNamespaceSelector` matched, sorted, with commas between them.
pub const SELECTED_NAMESPACES_ANNOTATION: &str = "olm.operatorframework.io/selected-namespaces";

/// Annotation of a revision: digest of everything that determines its objects.
pub const REVISION_IDENTITY_ANNOTATION: &str = "olm.operatorframework.io/revision-identity";
/// Annotation of a revision: reference, by digest, of the image that its objects were rendered from.
pub const RESOLVED_IMAGE_ANNOTATION: &str = "olm.operatorframework.io/resolved-bundle-image";
/// Annotation of a revision: catalog of its bundle.
pub const CATALOG_NAME_ANNOTATION: &str = "olm.operatorframework.io/catalog-name";
/// Annotation of the revision that moved its extension to another catalog: the former catalog.
pub const CATALOG_MOVED_FROM_ANNOTATION: &str = "olm.operatorframework.io/catalog-moved-from";
/// Annotation of a revision: issuer of the certificates of its webhooks.
pub const WEBHOOK_CERTIFICATES_ANNOTATION: &str = "olm.operatorframework.io/webhook-certificates";
/// Annotation of a revision: time at which certificates of operator-controller are due for renewal (RFC 3339).
pub const WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION: &str =
    "olm.operatorframework.io/webhook-certificates-renewal";
/// Annotation of a ClusterServiceVersion, and of the revision of its bundle: the object whose condition `Upgradeable` can hold
/// upgrades of the operator, as `Kind.version.group/name`.
pub const UPGRADEABLE_CONDITION_ANNOTATION: &str = "olm.operatorframework.io/upgradeable-condition";
/// Annotation of a revision that was taken over from a Helm release: digest of its objects.
pub const TAKEN_OVER_OBJECTS_ANNOTATION: &str = "olm.operatorframework.io/taken-over-objects";
/// Annotation of the index Secret of a Helm release: name of the revision that took the release over. A release is taken over once.
pub const TAKEN_OVER_BY_ANNOTATION: &str = "olm.operatorframework.io/taken-over-by";

/// Annotation of a revision: the inputs of its rollout, as JSON: digest of the spec, bundle, image, and catalog with its digest.
pub const ROLLOUT_ATTEMPT_ANNOTATION: &str = "olm.operatorframework.io/rollout-attempt";
/// Annotation of a revision with the content of a former one, as JSON: number of the former revision, the revision that was
/// rolled back, and the cause.
pub const ROLLBACK_ANNOTATION: &str = "olm.operatorframework.io/rollback";

/// Annotation of a ClusterCatalog: time at which somebody asked for a check of the registry (RFC 3339).
pub const REFRESH_REQUESTED_ANNOTATION: &str = "olm.operatorframework.io/refresh-requested-at";
/// Annotation of a ClusterCatalog: image reference with variables of the cluster's version, which replaces
/// `spec.source.image.ref`. The name is OLM Classic's.
pub const CATALOG_IMAGE_TEMPLATE_ANNOTATION: &str = "olm.catalogImageTemplate";
/// Annotation of a revision: `spec.deletion.customResources` of its extension; absent without the field.
pub const CUSTOM_RESOURCES_ON_DELETE_ANNOTATION: &str = "olm.operatorframework.io/custom-resources-on-delete";
/// Label of a CRD that stayed with its custom resources: name of the extension that installed it. The next extension
/// that installs the CRD adopts it and removes the label.
pub const KEPT_FROM_LABEL: &str = "olm.operatorframework.io/kept-from";

/// Annotation of a ClusterExtension: `"true"` lets upgrades and deletions go on although other extensions need what they
/// take away.
pub const IGNORE_DEPENDENTS_ANNOTATION: &str = "olm.operatorframework.io/ignore-dependents";
/// Annotation of a ClusterExtension: `true` installs bundles whose `minKubeVersion` is above the cluster's version.
pub const IGNORE_MIN_KUBE_VERSION_ANNOTATION: &str = "olm.operatorframework.io/ignore-min-kube-version";

/// Annotation of a ClusterExtension: highest number of a revision that is gone, unless a later one existed when it went. The next
/// revision has a higher number.
pub const HIGHEST_GONE_REVISION_ANNOTATION: &str = "olm.operatorframework.io/highest-gone-revision";

/// Annotation of a CRD whose deletion was stuck and that was touched to make the API server retry: time of the touch
/// (RFC 3339).
pub const DELETION_RECALLED_ANNOTATION: &str = "olm.operatorframework.io/deletion-recalled";

/// Label of Kubernetes' recommended set: name of the application.
pub const APPLICATION_NAME_LABEL: &str = "app.kubernetes.io/name";
/// Annotation in which `kubectl apply` keeps the last applied manifest.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Label of an `EndpointSlice`: its Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// Annotation of a Secret of cert-manager: its Certificate.
pub const CERTIFICATE_NAME_ANNOTATION: &str = "cert-manager.io/certificate-name";
/// Annotation of a Secret of OpenShift's service-ca: its Service.
pub const ORIGINATING_SERVICE_ANNOTATION: &str = "service.beta.openshift.io/originating-service-name";

/// Returns the selector of the objects of one ClusterExtension, or of any.
#[must_use]
pub fn selector_of_extension(name: Option<&str>) -> String {
    let any = format!("{OWNER_KIND_LABEL}={OWNER_KIND_CLUSTER_EXTENSION}");
    match name {
        Some(name) => format!("{any},{OWNER_NAME_LABEL}={name}"),
        None => any,
    }
}
