Feature: Broken images and bundles
  An image that cannot be pulled, or is not a valid bundle, is refused with its cause. The installation continues when the image
  is fixed.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A bundle image is missing from the registry
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents           |
      | test    | 1.0.0   | alpha   |          | ConfigMap, NoImage |
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
      error for resolved bundle "${PACKAGE:test}.1.0.0" with version "1.0.0"
      """
    And ClusterExtension has 0 revisions
    When the image of bundle "test" version "1.0.0" is pushed
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"

  Scenario: A bundle lacks a ClusterServiceVersion
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents         |
      | test    | 1.0.0   | alpha   |          | ConfigMap, NoCSV |
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
      no ClusterServiceVersion found in "manifests"
      """
    And ClusterExtension has 0 revisions

  Scenario: A bundle has an object of an unsupported kind
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents           |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Ingress |
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
      with kind "Ingress"
      """
    And ClusterExtension has 0 revisions
    And resource "configmap/test-configmap-${SCENARIO_ID}" is not installed

  Scenario: A missing catalog image does not affect other catalogs
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    And resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterCatalog
      metadata:
        name: broken-${SCENARIO_ID}
      spec:
        priority: -10
        source:
          type: Image
          image:
            ref: ${REGISTRY}/e2e/absent-${SCENARIO_ID}:latest
      """
    Then catalog object "broken-${SCENARIO_ID}" reports Progressing as True with Reason Retrying
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
