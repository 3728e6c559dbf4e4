Feature: Upgrade an extension
  The extension is upgraded to successors in the catalog, and only along its edges.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A new successor in the catalog is installed automatically
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap, ExtraConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap, ExtraConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap                 |
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
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is available
    When catalog "test" is updated to version "v2"
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And ClusterExtension is rolled out
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.1
      """
    And ClusterObjectSet "${NAME}-1" is archived
    And ClusterObjectSet "${NAME}-2" reports Succeeded as True with Reason Succeeded
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is eventually not found
    And ClusterExtension resources are created and labeled

  Scenario: A version that is not a successor is refused
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
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
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
            version: 1.0.2
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      error upgrading from currently installed version "1.0.0": no bundles found for package "${PACKAGE:test}" matching version "1.0.2"
      """
    And ClusterExtension reports Installed as True with Reason Succeeded
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"

  Scenario: The deprecation of an installed version is reported
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                                         |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap, Deprecated(1.0.0 has a known defect) |
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
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And ClusterExtension reports BundleDeprecated as True with Reason Deprecated and Message includes:
      """
      1.0.0 has a known defect
      """
    And ClusterExtension reports Deprecated as True with Reason Deprecated

  Scenario: A bad image blocks the rollout, and a new version fixes it
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, BadImage, ConfigMap   |
    And catalog "test" version "v3" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, BadImage, ConfigMap   |
      | test    | 1.0.2   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
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
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    When catalog "test" is updated to version "v2"
    Then ClusterObjectSet "${NAME}-2" reports Available as False with Reason ProbeFailure
    And ClusterExtension reports "${NAME}-1, ${NAME}-2" as active revisions
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    When catalog "test" is updated to version "v3"
    Then bundle "${PACKAGE:test}.1.0.2" is installed in version "1.0.2"
    And ClusterExtension is rolled out
    And ClusterObjectSet "${NAME}-2" is archived
