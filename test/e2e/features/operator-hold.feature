Feature: Holds of operators
  An operator holds its own upgrade by its condition Upgradeable; repairs, other changes and the deletion go on.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: An OperatorCondition holds an upgrade until it is overridden
    Given the kind OperatorCondition is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Deployment |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Deployment |
      | test    | 1.0.1   | alpha   | 1.0.0    | ConfigMap, Deployment |
    And resource is applied
      """
      apiVersion: operators.coreos.com/v2
      kind: OperatorCondition
      metadata:
        name: ${PACKAGE:test}.1.0.0
        namespace: ${TEST_NAMESPACE}
      spec:
        conditions:
          - type: Upgradeable
            status: "False"
            reason: Migration
            message: The operator migrates its data.
            lastTransitionTime: "2026-01-01T00:00:00Z"
      """
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
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And ClusterExtension is rolled out
    When catalog "test" is updated to version "v2"
    Then ClusterExtension reports Progressing as True with Reason HeldByOperator and Message includes:
      """
      OperatorCondition ${TEST_NAMESPACE}/"${PACKAGE:test}.1.0.0" has Upgradeable=False in spec.conditions (Migration: The operator migrates its data.)
      """
    And ClusterExtension reports UpgradeAvailable as True with Reason HeldByOperator
    And ClusterExtension reports Ready as True with Reason Succeeded
    And the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension has 1 revision
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
    When resource "operatorcondition/${PACKAGE:test}.1.0.0" is changed
      """
      spec:
        overrides:
          - type: Upgradeable
            status: "True"
            reason: Administrator
            message: The migration can be repeated.
      """
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And ClusterExtension is rolled out
    And no plan is pending
    And ClusterExtension has events: HeldByOperator, Installed, Upgraded

  Scenario: A held upgrade goes on when the condition is gone, and a held extension can be deleted
    Given the kind OperatorCondition is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | ConfigMap |
    And catalog "test" version "v3" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.1   | alpha   |          | ConfigMap |
      | test    | 1.0.2   | alpha   | 1.0.1    | ConfigMap |
    And resource is applied
      """
      apiVersion: operators.coreos.com/v2
      kind: OperatorCondition
      metadata:
        name: ${NAME}
        namespace: ${TEST_NAMESPACE}
      spec:
        overrides:
          - type: Upgradeable
            status: "False"
            reason: Administrator
            message: Not in this quarter.
      """
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
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    When catalog "test" is updated to version "v2"
    Then ClusterExtension reports Progressing as True with Reason HeldByOperator and Message includes:
      """
      has Upgradeable=False in spec.overrides (Administrator: Not in this quarter.)
      """
    When resource "operatorcondition/${NAME}" is removed
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    When resource is applied
      """
      apiVersion: operators.coreos.com/v2
      kind: OperatorCondition
      metadata:
        name: ${NAME}
        namespace: ${TEST_NAMESPACE}
      spec:
        conditions:
          - type: Upgradeable
            status: "False"
            reason: Busy
            message: Busy again.
            lastTransitionTime: "2026-01-01T00:00:00Z"
      """
    And catalog "test" is updated to version "v3"
    Then ClusterExtension reports Progressing as True with Reason HeldByOperator
    When ClusterExtension is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually not found

  Scenario: An object that the bundle names holds an upgrade
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                          |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Deployment, NamesHolder |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                          |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Deployment, NamesHolder |
      | test    | 1.0.1   | alpha   | 1.0.0    | ConfigMap, Deployment, NamesHolder |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          approval: Manual
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.0"
    When the pending plan is approved
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And ClusterExtension is rolled out
    When deployment "test-operator-${SCENARIO_ID}" has condition Upgradeable as False
    And catalog "test" is updated to version "v2"
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    When the pending plan is approved
    Then ClusterExtension reports Progressing as True with Reason HeldByOperator and Message includes:
      """
      Deployment ${TEST_NAMESPACE}/"test-operator-${SCENARIO_ID}" has Upgradeable=False in status.conditions (Busy: The operator is busy.)
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    When deployment "test-operator-${SCENARIO_ID}" has condition Upgradeable as True
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
