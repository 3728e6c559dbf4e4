Feature: Install namespace
  If spec.namespace is left out, the namespace that the bundle suggests is created with the extension and deleted with it.

  Background:
    Given OLM is available
    And an image registry is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents                       |
      | test    | 1.0.0   | alpha   |          | Deployment, NamespaceTemplate  |
      | test    | 1.1.0   | alpha   | 1.0.0    | Deployment, ConfigMap          |
      | plain   | 1.0.0   | alpha   |          | Deployment                     |

  Scenario: The namespace is created with its labels, stays the same in upgrades, and goes with the extension
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And resource "deployment/test-operator-${SCENARIO_ID}" is available
    And resource "namespace/${TEST_NAMESPACE}" matches
      """
      metadata:
        labels:
          pod-security.kubernetes.io/enforce: privileged
      """
    And resource "clusterextension/${NAME}" matches
      """
      status:
        install:
          namespace: ${TEST_NAMESPACE}
      """
    When resource "namespace/${TEST_NAMESPACE}" is changed
      """
      metadata:
        labels:
          pod-security.kubernetes.io/enforce: restricted
      """
    Then resource "namespace/${TEST_NAMESPACE}" matches
      """
      metadata:
        labels:
          pod-security.kubernetes.io/enforce: privileged
      """
    When ClusterExtension is updated
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: 1.1.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then bundle "${PACKAGE:test}.1.1.0" is installed in version "1.1.0"
    And resource "configmap/test-configmap-${SCENARIO_ID}" is available
    And resource "clusterextension/${NAME}" matches
      """
      status:
        install:
          namespace: ${TEST_NAMESPACE}
      """
    When ClusterExtension is removed
    Then resource "namespace/${TEST_NAMESPACE}" is eventually not found

  Scenario: A namespace with objects of others stays, and the next installation adopts it
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource is applied
      """
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: notes
        namespace: ${TEST_NAMESPACE}
      """
    And ClusterExtension is removed
    Then ClusterExtension has events: NamespaceKept, Uninstalled
    And resource "deployment/test-operator-${SCENARIO_ID}" is eventually not found
    And resource "configmap/notes" is available
    And resource "namespace/${TEST_NAMESPACE}" matches
      """
      metadata:
        labels:
          olm.operatorframework.io/kept-from: ${NAME}
      """
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And resource "namespace/${TEST_NAMESPACE}" is no longer labeled as kept
    And resource "configmap/notes" is available
    When resource "configmap/notes" is removed
    And ClusterExtension is removed
    Then resource "namespace/${TEST_NAMESPACE}" is eventually not found

  Scenario: A namespace of others is never taken over
    Given namespace "${TEST_NAMESPACE}" is available
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      namespace "${TEST_NAMESPACE}", which would be created with the extension, exists and belongs to somebody else
      """
    And ClusterExtension has 0 revisions
    When resource "namespace/${TEST_NAMESPACE}" is removed
    Then ClusterExtension is rolled out
    And resource "deployment/test-operator-${SCENARIO_ID}" is available

  Scenario: A package whose bundle suggests nothing gets a namespace of its name
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:plain}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And resource "namespace/${PACKAGE:plain}-system" matches
      """
      status:
        phase: Active
      """
    And resource "clusterextension/${NAME}" matches
      """
      status:
        install:
          namespace: ${PACKAGE:plain}-system
      """
    When ClusterExtension is removed
    Then resource "namespace/${PACKAGE:plain}-system" is eventually not found

  Scenario: A service account needs a namespace that exists before
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
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
    Then ClusterExtension reports Progressing as False with Reason Blocked and Message includes:
      """
      spec.serviceAccount needs spec.namespace
      """
