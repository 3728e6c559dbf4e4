Feature: Takeover from upstream's Helm runtime
  A Helm installation of upstream counts as installed. Its objects are adopted unchanged and upgraded along the catalog's graph.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A release becomes the first revision
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | ConfigMap |
      | test    | 1.0.2   | alpha   | 1.0.1    | ConfigMap |
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
            version: 9.9.9
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying
    When Helm has installed bundle "test" in version "1.0.0"
    And ClusterExtension is updated
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
    Then bundle "${PACKAGE:test}.1.0.2" is installed in version "1.0.2"
    And ClusterExtension is rolled out
    And ClusterObjectSet "${NAME}-1" is archived
    And ClusterObjectSet "${NAME}-2" is archived
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      metadata:
        labels:
          app.kubernetes.io/managed-by: olm.operatorframework.io
      data:
        version: 1.0.2
      """
    And the objects that Helm installed were not recreated
    And the ClusterExtension has no event Degraded
    When ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains

  Scenario: A release of the bundle that is wanted becomes its revision
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
            version: 9.9.9
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying
    When Helm has installed bundle "test" in version "1.0.0"
    And ClusterExtension is updated
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
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And ClusterExtension is rolled out
    And ClusterExtension is installed from catalog "test"
    And ClusterExtension reports Ready as True with Reason Succeeded
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      metadata:
        labels:
          app.kubernetes.io/managed-by: olm.operatorframework.io
        annotations:
          olm.operatorframework.io/bundle-version: 1.0.0
      """
    And the objects that Helm installed were not recreated
    And ClusterExtension has 1 revision
    And the ClusterExtension has no event Degraded
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
    And the Helm release is marked as taken over by ClusterObjectSet "${NAME}-1"
    When ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains

  Scenario: Custom resources of a release outlive the extension
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents       |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap |
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
            version: 9.9.9
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying
    When Helm has installed bundle "test" in version "1.0.0" with its CustomResourceDefinition
    And ClusterExtension is updated
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
            version: 9.9.8
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        labels:
          app.kubernetes.io/managed-by: olm.operatorframework.io
      """
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is not owned by the ClusterExtension
    And resource "configmap/test-configmap-${SCENARIO_ID}" is not owned by the ClusterExtension
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        labels:
          olm.operatorframework.io/kept-from: ${NAME}
      """
    And resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed
