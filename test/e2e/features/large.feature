Feature: Large bundles
  Objects that exceed one request are stored in immutable Secrets. A phase with too many objects is split.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: Eight megabytes of CustomResourceDefinitions
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                  |
      | test    | 1.0.0   | alpha   |          | LargeCRDs(10), ConfigMap  |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                  |
      | test    | 1.0.0   | alpha   |          | LargeCRDs(10), ConfigMap  |
      | test    | 1.0.1   | alpha   | 1.0.0    | LargeCRDs(10), ConfigMap  |
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
    And ClusterObjectSet "${NAME}-1" keeps its objects in immutable Secrets
    And 10 objects of kind "customresourcedefinition" are labeled for ClusterExtension
    When catalog "test" is updated to version "v2"
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And resource "customresourcedefinition/large9s.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        annotations:
          version: 1.0.1
      """
    When ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains

  Scenario: A phase of three hundred objects
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | Many(300) |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | Many(300) |
      | test    | 1.0.1   | alpha   | 1.0.0    | Many(280) |
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
    And 300 objects of kind "configmap" are labeled for ClusterExtension
    When catalog "test" is updated to version "v2"
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And 280 objects of kind "configmap" are labeled for ClusterExtension
    And resource "configmap/many-0-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.1
      """
    When ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
