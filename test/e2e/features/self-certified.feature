Feature: SelfCertified
  An administrator may upgrade and downgrade regardless of the upgrade graph.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A downgrade requires SelfCertified
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
      | test    | 1.0.2   | alpha   | 1.0.1    | CRD, Deployment, ConfigMap |
      | test    | 2.0.0   | beta    | 1.0.2    | CRD, Deployment, ConfigMap |
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
            version: 1.0.2
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.2" is installed in version "1.0.2"
    When ClusterExtension is updated
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
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      error upgrading from currently installed version "1.0.2": no bundles found for package "${PACKAGE:test}" matching version "1.0.0"
      """
    When ClusterExtension is updated
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
            version: 1.0.0
            upgradeConstraintPolicy: SelfCertified
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And ClusterExtension is rolled out
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.0
      """
