Feature: Dependencies of a bundle
  A bundle is installed when its dependencies are met. Until then the status names them. Dependencies are not installed
  automatically.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A bundle requires a package and its API
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                                    |
      | base    | 1.0.0   | alpha   |          | CRD, ConfigMap                                              |
      | base    | 1.1.0   | alpha   | 1.0.0    | CRD, ConfigMap                                              |
      | test    | 1.0.0   | alpha   |          | ExtraConfigMap, RequiresPackage(base >=1.1.0), RequiresAPI |
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
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      has dependencies that are not met: it needs package "${PACKAGE:base}" in a version ">=1.1.0", and it is not installed; it needs the API e2e-${SCENARIO_ID}.example.com/v1 Test, which the cluster does not serve
      """
    And ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      There is the API e2e-${SCENARIO_ID}.example.com/v1 Test: package "${PACKAGE:base}" of catalog "${CATALOG:test}"
      """
    And ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      There is package "${PACKAGE:base}" in a version ">=1.1.0": catalog "${CATALOG:test}" (version 1.1.0)
      """
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is not installed
    When resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}-base
      spec:
        namespace: ${TEST_NAMESPACE}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:base}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is installed

  Scenario: A bundle requires a property of another bundle
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                            |
      | paint   | 1.0.0   | alpha   |          | ConfigMap, Color(red)               |
      | test    | 1.0.0   | alpha   |          | ExtraConfigMap, RequiresColor(red)  |
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
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      something red is needed: it needs a bundle for which
      """
    When resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}-paint
      spec:
        namespace: ${TEST_NAMESPACE}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:paint}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"

  Scenario: A dependency is invalid
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                         |
      | test    | 1.0.0   | alpha   |          | ExtraConfigMap, BrokenConstraint |
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
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      has a dependency that cannot be read: property olm.constraint: constraint.all has no list of constraints
      """
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is not installed
