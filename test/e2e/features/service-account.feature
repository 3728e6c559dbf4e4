Feature: Installation with the permissions of a service account
  Missing permissions are reported before anything is written. Objects that an account installed are removed with its
  permissions.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | Deployment, ConfigMap |

  Scenario: Missing permissions, sufficient permissions, and missing permissions for the removal
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        serviceAccount:
          name: installer
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      operation cannot proceed due to the following validation error(s): service account "installer" not found in namespace "${TEST_NAMESPACE}"
      """
    When resource is applied
      """
      apiVersion: v1
      kind: ServiceAccount
      metadata:
        name: installer
        namespace: ${TEST_NAMESPACE}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      pre-authorization failed: service account requires the following permissions to manage cluster extension:
        Namespace:"" APIGroups:[] Resources:[configmaps,namespaces] Verbs:[get,list,watch]
        Namespace:"" APIGroups:[olm.operatorframework.io] Resources:[clusterobjectsets/finalizers] Verbs:[update]
      """
    And ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
        Namespace:"${TEST_NAMESPACE}" APIGroups:[] Resources:[configmaps] ResourceNames:[test-configmap-${SCENARIO_ID}] Verbs:[delete
      """
    And ClusterExtension has 0 revisions
    And resource "configmap/test-configmap-${SCENARIO_ID}" is not installed
    When the installer is granted its permissions
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And resource "deployment/test-operator-${SCENARIO_ID}" is available
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
    When resource "clusterrolebinding/installer-${SCENARIO_ID}" is removed
    And deletion of ClusterExtension is requested
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      User "system:serviceaccount:${TEST_NAMESPACE}:installer" cannot delete resource
      """
    And resource "deployment/test-operator-${SCENARIO_ID}" is installed
    When the installer is granted its permissions
    Then ClusterExtension is gone
    And no object labeled for the ClusterExtension remains

  Scenario: The account is deleted before the extension
    When resource is applied
      """
      apiVersion: v1
      kind: ServiceAccount
      metadata:
        name: installer
        namespace: ${TEST_NAMESPACE}
      """
    And the installer is granted its permissions
    And ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        serviceAccount:
          name: installer
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource "serviceaccount/installer" is removed
    And deletion of ClusterExtension is requested
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      service account "installer" not found in namespace "${TEST_NAMESPACE}"
      """
    And resource "configmap/test-configmap-${SCENARIO_ID}" is installed
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        serviceAccount: null
      """
    Then ClusterExtension is gone
    And no object labeled for the ClusterExtension remains
