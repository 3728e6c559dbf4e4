Feature: A status that tools can trust
  Ready, Reconciling and Stalled agree with the other conditions. At the end of the run, all observed statuses are checked
  against the rules of kstatus.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: Ready follows the workload, and a held-back successor is reported
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.1.0   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
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
            version: 1.0.x
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Ready as True with Reason Succeeded and Message includes:
      """
      Version 1.0.0 is installed and available, from catalog "${CATALOG:test}".
      """
    And ClusterExtension reports UpgradeAvailable as True with Reason HeldByVersion and Message includes:
      """
      Version 1.1.0 (bundle "${PACKAGE:test}.1.1.0" of catalog "${CATALOG:test}") is held back by spec.source.catalog.version "1.0.x"
      """
    And ClusterExtension is installed from catalog "test"
    And ClusterExtension has events: Resolved, Installed, UpgradeAvailable
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
    And ClusterExtension has events: DriftRepaired
    When deployment "test-operator-${SCENARIO_ID}" reports as not ready
    Then ClusterExtension reports Available as False with Reason ProbeFailure
    And ClusterExtension reports Ready as False with Reason ProbeFailure
    And ClusterObjectSet "${NAME}-1" reports Available as False with Reason ProbeFailure
    And ClusterExtension has events: Degraded
    When deployment "test-operator-${SCENARIO_ID}" reports as ready
    Then ClusterExtension reports Available as True with Reason ProbesSucceeded
    And ClusterExtension reports Ready as True with Reason Succeeded
    And ClusterObjectSet "${NAME}-1" reports Ready as True with Reason Succeeded
    When ClusterExtension is updated
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        config:
          configType: Inline
          inline:
            nonsense: true
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Stalled as True with Reason InvalidConfiguration
    And ClusterExtension reports Ready as False with Reason InvalidConfiguration
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
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Ready as True with Reason Succeeded and Message includes:
      """
      Version 1.1.0 is installed and available
      """
    And ClusterExtension reports UpgradeAvailable as False with Reason UpToDate
    When ClusterExtension is removed
    Then ClusterExtension has events: Upgraded, Uninstalled

  Scenario: An extension moves to another catalog when its own is deleted
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents       |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap |
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
              matchExpressions:
              - key: olm.operatorframework.io/metadata.name
                operator: In
                values: ["${CATALOG:test}", "${CATALOG:other}"]
      """
    Then ClusterExtension is rolled out
    And ClusterExtension is installed from catalog "test"
    Given a catalog "other" with packages:
      | package | version | channel | replaces | contents       |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap |
    Then ClusterExtension is installed from catalog "test"
    When catalog "test" is deleted
    Then ClusterExtension is installed from catalog "other" after a move from "test"
    And ClusterExtension reports Ready as True with Reason Succeeded and Message includes:
      """
      It moved to catalog "${CATALOG:other}" because catalog "${CATALOG:test}" of the installed bundle was deleted, disabled or no longer selected.
      """
    And ClusterExtension has events: CatalogMoved
    And ClusterExtension has 1 revision

  Scenario: An installed extension stays ready while no catalog can be read
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents  |
      | other   | 1.0.0   | alpha   |          | ConfigMap |
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
    And ClusterExtension reports Ready as True with Reason Succeeded
    When catalog "test" is updated to version "v2"
    Then ClusterExtension reports Progressing as True with Reason Retrying
    And ClusterExtension reports Ready as True with Reason Succeeded and Message includes:
      """
      Other versions cannot be resolved at the moment
      """
    And ClusterExtension has events: Retrying
    When resource "configmap/test-configmap-${SCENARIO_ID}" is removed
    Then resource "configmap/test-configmap-${SCENARIO_ID}" is eventually restored
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
            version: 2.x
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Ready as False with Reason Retrying
    And ClusterExtension reports Reconciling as True with Reason Retrying

  Scenario: A failure that only a change of the spec fixes is terminal
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    When resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: long-${SCENARIO_ID}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
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
    Then ClusterExtension "long-${SCENARIO_ID}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" reports Progressing as False with Reason Blocked and Message includes:
      """
      create it again with a shorter name
      """
    And ClusterExtension "long-${SCENARIO_ID}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" reports Stalled as True with Reason Blocked and Message includes:
      """
      is too long
      """
    And ClusterExtension "long-${SCENARIO_ID}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" has events: Blocked
    When resource "clusterextension/long-${SCENARIO_ID}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is removed
    Then resource "clusterextension/long-${SCENARIO_ID}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" is eventually not found
