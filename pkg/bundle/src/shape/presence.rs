//! Rules for writing absent and empty fields.
//!
//! The API's schema says which fields are required. Whether an optional one keeps `0`, `false`, `""` or `[]` depends on
//! how Kubernetes' Go types hold it (as a value or as a pointer), which no schema shows. This module lists the
//! exceptions.

use serde_json::Value;

use super::Shape;

/// Conditions under which a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The field is always written: null if it is absent.
    OrNull,
    /// The field is always written: the empty value of its shape if it is absent.
    OrEmpty,
    /// The field is written with any value; null counts as absent.
    AsGiven,
    /// The field is written unless it is empty.
    UnlessEmpty,
}

/// Exceptions to [`usual`]: `field` of every structure, or `Structure.field`, which takes precedence.
const EXCEPTIONS: [(Presence, &str); 4] = [
    (
        Presence::OrNull,
        "DeploymentSpec.selector GRPCAction.service ProjectedVolumeSource.sources ScaleIOVolumeSource.secretRef \
         TypedLocalObjectReference.apiGroup TypedObjectReference.apiGroup",
    ),
    (
        Presence::OrEmpty,
        "Container.resources DeploymentSpec.strategy EphemeralContainer.resources PersistentVolumeClaimSpec.resources \
         PersistentVolumeClaimTemplate.metadata PodTemplateSpec.metadata PodTemplateSpec.spec ResourceFieldSelector.divisor",
    ),
    (
        Presence::AsGiven,
        "allowPrivilegeEscalation automountServiceAccountToken blockOwnerDeletion cachingMode controller \
         enableServiceLinks fsGroupChangePolicy gmsaCredentialSpec gmsaCredentialSpecName hostProcess hostUsers \
         hostnameOverride initiatorName localhostProfile mountPropagation nodeAffinityPolicy nodeTaintsPolicy optional \
         podGroupName preemptionPolicy privileged procMount readOnlyRootFilesystem recursiveReadOnly resourceClaimName \
         resourceClaimTemplateName runAsNonRoot runAsUserName runtimeClassName seLinuxChangePolicy setHostnameAsFQDN \
         shareProcessNamespace stopSignal storageClassName supplementalGroupsPolicy volumeAttributesClassName volumeMode \
         AzureDiskVolumeSource.fsType AzureDiskVolumeSource.kind AzureDiskVolumeSource.readOnly CSIVolumeSource.fsType \
         CSIVolumeSource.readOnly ClusterTrustBundleProjection.name ClusterTrustBundleProjection.signerName \
         Container.restartPolicy EphemeralContainer.restartPolicy HostPathVolumeSource.type PodDNSConfigOption.value \
         TypedObjectReference.namespace",
    ),
    (
        Presence::UnlessEmpty,
        "failureThreshold generation hostPort initialDelaySeconds minReadySeconds partition periodSeconds \
         successThreshold timeoutSeconds ConfigMapEnvSource.name ConfigMapKeySelector.name ConfigMapProjection.name \
         ConfigMapVolumeSource.name ContainerRestartRule.action ContainerRestartRuleOnExitCodes.operator \
         LocalObjectReference.name PodCertificateProjection.keyType PodCertificateProjection.signerName \
         SecretEnvSource.name SecretKeySelector.name SecretProjection.name",
    ),
];

/// Returns the names of all exceptions.
#[cfg(test)]
pub(super) fn exceptions() -> impl Iterator<Item = &'static str> {
    EXCEPTIONS.iter().flat_map(|(_, names)| names.split_whitespace())
}

/// Returns the presence of the field `field` of the structure `type_name`.
pub(super) fn of(type_name: &str, field: &str, shape: &Shape, required: bool) -> Presence {
    let structure = type_name.rsplit('.').next().unwrap_or(type_name);
    let qualified = format!("{structure}.{field}");
    let listed = |name: &str| {
        EXCEPTIONS
            .iter()
            .find(|(_, names)| names.split_whitespace().any(|known| known == name))
            .map(|(presence, _)| *presence)
    };
    listed(&qualified)
        .or_else(|| listed(field).filter(|_| !required))
        .unwrap_or_else(|| usual(shape, required))
}

/// Returns the presence of most fields of a shape.
pub(super) fn usual(shape: &Shape, required: bool) -> Presence {
    match shape {
        _ if required => Presence::OrEmpty,
        Shape::Str | Shape::Bytes | Shape::Bool | Shape::List(_) | Shape::Map(_) => Presence::UnlessEmpty,
        _ => Presence::AsGiven,
    }
}

/// Returns true if Go's encoder omits `value` in a field with `omitempty`.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
