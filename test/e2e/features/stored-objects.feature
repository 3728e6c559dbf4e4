Feature: Stored objects and a changed CRD
  If requested, the stored objects decide if a CRD may change.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: An object that would become invalid is reported and fixed
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents            |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap      |
      | test    | 2.0.0   | alpha   | 1.0.0    | SmallCRD, ConfigMap |
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
            version: "1.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And resource "tests.e2e-${SCENARIO_ID}.example.com/none" is eventually not found
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: seven
        namespace: ${TEST_NAMESPACE}
      spec:
        size: 7
      """
    And resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: three
        namespace: ${TEST_NAMESPACE}
      spec:
        size: 3
      """
    And ClusterExtension is updated
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        install:
          preflight:
            crdUpgradeSafety:
              enforcement: None
              storedObjects: Check
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      validating stored objects for CRD "tests.e2e-${SCENARIO_ID}.example.com": 1 of 2 would not be valid in version v1: ${TEST_NAMESPACE}/seven: spec.size: 7 is more than the maximum 5
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    When resource "tests.e2e-${SCENARIO_ID}.example.com/seven" is changed
      """
      spec:
        size: 4
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.2.0.0" is installed in version "2.0.0"
