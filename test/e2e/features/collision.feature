Feature: Collisions
  Objects of other owners are not changed. The status names the owner, and the installation continues when the object is gone.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: An object exists already and is deleted later
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | Deployment, ConfigMap |
    When resource is applied
      """
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: test-configmap-${SCENARIO_ID}
        namespace: ${TEST_NAMESPACE}
      data:
        version: theirs
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
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      revision object collisions in phase
      """
    And ClusterExtension reports Installed as False with Reason Failed
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: theirs
      """
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then ClusterExtension is rolled out
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.0
      """

  Scenario: A second extension of the same package is refused
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
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
            version: 1.0.1
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    When resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}-dup
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
    Then ClusterExtension "${NAME}-dup" reports Progressing as True with Reason Retrying and Message includes:
      """
      Conflicting Owner: olm.operatorframework.io/v1, Kind=ClusterObjectSet ${NAME}-2
      """
    And bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    When resource "clusterextension/${NAME}-dup" is removed
    Then resource "clusterextension/${NAME}-dup" is eventually not found
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.1
      """
    And ClusterExtension reports Available as True with Reason ProbesSucceeded

  Scenario: A field manager that keeps changing a field is reported
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
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When "rival" keeps changing "configmap/test-configmap-${SCENARIO_ID}" until ClusterExtension reports it
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is installed
