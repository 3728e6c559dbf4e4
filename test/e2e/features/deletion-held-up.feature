Feature: Blocked deletions
  The status names the blocker, and its removal lets the deletion continue; see docs/deleting.md.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: The namespace is deleted first and is stuck
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
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
        name: foreign
        namespace: ${TEST_NAMESPACE}
        finalizers: [example.com/hold]
      """
    And resource "namespace/${TEST_NAMESPACE}" is removed
    And ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
    And resource "configmap/foreign" is installed
    When resource "configmap/foreign" is changed
      """
      metadata:
        finalizers: null
      """
    Then resource "namespace/${TEST_NAMESPACE}" is eventually not found

  Scenario: A custom resource has a finalizer without a controller
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        deletion:
          customResources: Delete
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: held-${SCENARIO_ID}
        namespace: ${TEST_NAMESPACE}
        finalizers: [example.com/operator]
      """
    And deletion of ClusterExtension is requested
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      waiting until these are gone: CustomResourceDefinition.apiextensions.k8s.io/v1 /tests.e2e-${SCENARIO_ID}.example.com (its custom resources are not gone yet
      """
    And resource "deployment/test-operator-${SCENARIO_ID}" is eventually not found
    And resource "configmap/test-configmap-${SCENARIO_ID}" is installed
    When resource "tests.e2e-${SCENARIO_ID}.example.com/held-${SCENARIO_ID}" is changed
      """
      metadata:
        finalizers: null
      """
    Then ClusterExtension is gone
    And no object labeled for the ClusterExtension remains

  Scenario: A finalizer of another controller is reported
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource "configmap/test-configmap-${SCENARIO_ID}" is changed
      """
      metadata:
        finalizers: [example.com/backup]
      """
    And deletion of ClusterExtension is requested
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      ConfigMap.v1 ${TEST_NAMESPACE}/test-configmap-${SCENARIO_ID} (held by finalizer example.com/backup)
      """
    When resource "configmap/test-configmap-${SCENARIO_ID}" is changed
      """
      metadata:
        finalizers: null
      """
    Then ClusterExtension is gone
