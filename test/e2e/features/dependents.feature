Feature: Dependents of an extension
  An upgrade or deletion waits as long as another installed extension needs what it would take away; see docs/dependencies.md.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A package and an API that others need are neither upgraded away nor deleted
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                                          |
      | base    | 1.0.0   | alpha   |          | CRD, ConfigMap                                                    |
      | base    | 2.0.0   | alpha   | 1.0.0    | CRD, ConfigMap                                                    |
      | test    | 1.0.0   | alpha   |          | ExtraConfigMap, RequiresPackage(base >=1.0.0 <2.0.0), RequiresAPI |
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
            version: "1.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    And ClusterExtension is applied
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
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension "${NAME}-base" reports Progressing as True with Reason Retrying and Message includes:
      """
      bundle "${PACKAGE:base}.2.0.0" with version "2.0.0" is held, because it lacks what others need: ClusterExtension "${NAME}" needs package "${PACKAGE:base}" in a version ">=1.0.0 <2.0.0". Upgrade or delete these first, or go on without them: kubectl annotate clusterextension ${NAME}-base olm.operatorframework.io/ignore-dependents=true
      """
    When resource "clusterextension/${NAME}-base" is removed
    Then ClusterExtension "${NAME}-base" reports Progressing as True with Reason Retrying and Message includes:
      """
      being deleted: held, because others need what it installed: ClusterExtension "${NAME}" needs
      """
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is installed
    When ClusterExtension is removed
    Then resource "clusterextension/${NAME}-base" is eventually not found
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is eventually not found

  Scenario: An annotation lets the change go on
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                              |
      | base    | 1.0.0   | alpha   |          | ConfigMap                                             |
      | base    | 2.0.0   | alpha   | 1.0.0    | ConfigMap                                             |
      | test    | 1.0.0   | alpha   |          | ExtraConfigMap, RequiresPackage(base >=1.0.0 <2.0.0) |
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
            version: "1.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    And ClusterExtension is applied
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
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension "${NAME}-base" reports Progressing as True with Reason Retrying and Message includes:
      """
      is held, because it lacks what others need
      """
    When resource "clusterextension/${NAME}-base" is changed
      """
      metadata:
        annotations:
          olm.operatorframework.io/ignore-dependents: "true"
      """
    Then ClusterExtension "${NAME}-base" reports Installed as True with Reason Succeeded and Message includes:
      """
      2.0.0
      """
    When resource "clusterextension/${NAME}-base" is removed
    Then resource "clusterextension/${NAME}-base" is eventually not found
