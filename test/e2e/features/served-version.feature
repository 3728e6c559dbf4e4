Feature: A version that a CRD no longer serves
  An upgrade must not break clients that write through a version that is no longer served.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: An object that was written through the version blocks the upgrade
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                  |
      | test    | 1.0.0   | alpha   |          | TwoVersionsCRD, ConfigMap |
      | test    | 2.0.0   | alpha   | 1.0.0    | CRD, ConfigMap            |
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
        name: new
        namespace: ${TEST_NAMESPACE}
      spec:
        size: 7
      """
    And resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1alpha1
      kind: Test
      metadata:
        name: old
        namespace: ${TEST_NAMESPACE}
      spec:
        size: 7
      """
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
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      validating upgrade for CRD "tests.e2e-${SCENARIO_ID}.example.com": servedVersionRemoval: version v1alpha1 is no longer served, but "e2e" wrote ${TEST_NAMESPACE}/old through it
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    When resource "tests.e2e-${SCENARIO_ID}.example.com/old" is removed
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.2.0.0" is installed in version "2.0.0"
    And ClusterExtension has events: ServedVersionRemoved

  Scenario: A waiver accepts the change
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                  |
      | test    | 1.0.0   | alpha   |          | TwoVersionsCRD, ConfigMap |
      | test    | 2.0.0   | alpha   | 1.0.0    | CRD, ConfigMap            |
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
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1alpha1
      kind: Test
      metadata:
        name: old
        namespace: ${TEST_NAMESPACE}
      spec:
        size: 7
      """
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
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      validating upgrade for CRD "tests.e2e-${SCENARIO_ID}.example.com": servedVersionRemoval: version v1alpha1 is no longer served, but "e2e" wrote ${TEST_NAMESPACE}/old through it
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
                  rule: servedVersionRemoval
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
