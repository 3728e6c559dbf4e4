Feature: An unsafe change of a CRD
  An unsafe change is refused unless a waiver accepts it.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A waiver accepts one change
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
    When ClusterExtension is updated
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
              enforcement: Strict
              waivers:
                - crd: tests.e2e-${SCENARIO_ID}.example.com
                  rule: minimum
                  path: ^.spec.size
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
      validating upgrade for CRD "tests.e2e-${SCENARIO_ID}.example.com": v1: ^.spec.size: maximum: maximum constraint added when there was none previously : 5
      """
    And ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      (waivers that match nothing: minimum of tests.e2e-${SCENARIO_ID}.example.com at ^.spec.size)
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    When ClusterExtension is updated
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
              enforcement: Strict
              waivers:
                - crd: tests.e2e-${SCENARIO_ID}.example.com
                  rule: maximum
                  path: ^.spec.size
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.2.0.0" is installed in version "2.0.0"
