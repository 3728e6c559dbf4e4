Feature: Drift
  Deleted and changed objects are restored. Fields that others add stay.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: Deleted and changed objects are repaired
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
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
    When resource "configmap/test-configmap-${SCENARIO_ID}" is changed
      """
      data:
        version: wrong
      """
    Then resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.0
      """
    And ClusterExtension has one aggregated DriftRepaired event
    When resource "deployment/test-operator-${SCENARIO_ID}" is removed
    Then resource "deployment/test-operator-${SCENARIO_ID}" is eventually restored
    And resource "deployment/test-operator-${SCENARIO_ID}" is available

  Scenario: Labels and annotations of users stay
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
    When resource "deployment/test-operator-${SCENARIO_ID}" is changed
      """
      metadata:
        labels:
          team: storage
        annotations:
          note: keep
      spec:
        template:
          metadata:
            annotations:
              kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"
      """
    And resource "configmap/test-configmap-${SCENARIO_ID}" is changed
      """
      data:
        version: wrong
      """
    Then resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.0
      """
    And resource "deployment/test-operator-${SCENARIO_ID}" matches
      """
      metadata:
        labels:
          team: storage
        annotations:
          note: keep
      spec:
        template:
          metadata:
            annotations:
              kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"
      """

  Scenario: The status follows the readiness of a workload
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
    When deployment "test-operator-${SCENARIO_ID}" reports as not ready
    Then ClusterExtension reports Available as False with Reason ProbeFailure
    When deployment "test-operator-${SCENARIO_ID}" reports as ready
    Then ClusterExtension reports Available as True with Reason ProbesSucceeded
