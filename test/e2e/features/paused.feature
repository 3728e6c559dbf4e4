Feature: Pause
  While spec.rollout.paused is true, nothing is resolved, applied or repaired. Deletion works.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A paused extension stays as it is until it is resumed
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
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
        rollout:
          paused: false
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
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: true
      """
    Then ClusterExtension reports Progressing as False with Reason Paused and Message includes:
      """
      Resume with: kubectl olm resume ${NAME}
      """
    And ClusterExtension reports Stalled as True with Reason Paused
    And ClusterObjectSet "${NAME}-1" reports Progressing as False with Reason Paused
    And ClusterExtension reports Available as True with Reason ProbesSucceeded
    When catalog "test" is updated to version "v2"
    And resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then ClusterExtension reports Available as False with Reason ProbeFailure
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And resource "configmap/test-configmap-${SCENARIO_ID}" is not installed
    And ClusterExtension has 1 revision
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: null
      """
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
    And bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And ClusterExtension is rolled out
    And ClusterExtension has events: Paused, Resumed, Upgraded

  Scenario: A paused extension is deleted
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          paused: false
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: true
      """
    Then ClusterObjectSet "${NAME}-1" reports Progressing as False with Reason Paused
    When ClusterExtension is removed
    Then the ClusterExtension's constituent resources are removed

  Scenario: The number of a deleted revision is not used again
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          paused: false
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: true
      """
    Then ClusterObjectSet "${NAME}-1" reports Progressing as False with Reason Paused
    When resource "clusterobjectset/${NAME}-1" is removed
    Then resource "clusterobjectset/${NAME}-1" is eventually not found
    And resource "clusterextension/${NAME}" matches
      """
      metadata:
        annotations:
          olm.operatorframework.io/highest-gone-revision: "1"
      """
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: null
      """
    Then ClusterExtension reports "${NAME}-2" as active revision
    And resource "configmap/test-configmap-${SCENARIO_ID}" is installed
    And ClusterExtension is rolled out
