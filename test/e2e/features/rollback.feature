Feature: Rollback
  With spec.rollout.onFailure: RollBack, the content of the installed revision returns when an upgrade fails. With
  spec.rollout.rollBackTo, that of any former revision does. What would lose data is refused.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available
    And min value for ClusterExtension .spec.progressDeadlineMinutes is set to 1
    And min value for ClusterObjectSet .spec.progressDeadlineMinutes is set to 1

  Scenario: A failed upgrade is rolled back and waits for other content of its catalog
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                                 |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap               |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, BadImage, ConfigMap, ExtraConfigMap |
    And catalog "test" version "v3" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.2   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        progressDeadlineMinutes: 1
        rollout:
          onFailure: RollBack
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
    Then ClusterObjectSet "${NAME}-2" reports Progressing as True with Reason RollingOut
    And ClusterObjectSet "${NAME}-3" reports Succeeded as True with Reason Succeeded
    And ClusterExtension reports RolledBack as True with Reason RolledBack and Message includes:
      """
      Version 1.0.1 (revision 2) failed and was rolled back to version 1.0.0. Version 1.0.1 is tried again when its catalog, its image, the selected namespaces or the spec change. Failure: Revision has not rolled out for 1 minute(s).
      """
    And ClusterExtension reports Progressing as False with Reason RolledBack
    And ClusterExtension reports UpgradeAvailable as True with Reason RolledBack
    And ClusterExtension reports Stalled as True with Reason RolledBack
    And ClusterExtension reports Available as True with Reason ProbesSucceeded
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterObjectSet "${NAME}-2" is archived
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is not installed
    And ClusterExtension has 3 revisions
    And ClusterExtension has events: RollingOut, RolledBack
    When catalog "test" is updated to version "v3"
    Then bundle "${PACKAGE:test}.1.0.2" is installed in version "1.0.2"
    And ClusterExtension is rolled out
    And ClusterExtension reports Ready as True with Reason Succeeded
    And ClusterExtension has events: RollBackEnded, Upgraded

  Scenario: A failed upgrade waits without onFailure, and a change of the spec takes it up again
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                                 |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap               |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, BadImage, ConfigMap, ExtraConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        progressDeadlineMinutes: 1
        rollout:
          onFailure: Wait
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
    Then ClusterExtension reports Progressing as False with Reason ProgressDeadlineExceeded
    And ClusterExtension has 2 revisions
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          onFailure: RollBack
      """
    Then ClusterExtension reports Progressing as False with Reason RolledBack
    And ClusterExtension has 3 revisions
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          requireApprovalFor: [MajorVersion]
      """
    Then ClusterObjectSet "${NAME}-4" reports Progressing as True with Reason RollingOut
    And ClusterExtension reports "${NAME}-3, ${NAME}-4" as active revisions

  Scenario: An upgrade is rolled back as soon as no stored object would be harmed
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                        |
      | test    | 1.0.0   | alpha   |          | SmallCRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                        |
      | test    | 1.0.0   | alpha   |          | SmallCRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | WideCRD, BadImage, ConfigMap    |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        progressDeadlineMinutes: 1
        rollout:
          onFailure: RollBack
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
    Then ClusterObjectSet "${NAME}-2" reports Progressing as True with Reason RollingOut
    When resource is eventually applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: red
        namespace: ${TEST_NAMESPACE}
      spec:
        color: red
      """
    And resource is eventually applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: seven
        namespace: ${TEST_NAMESPACE}
      spec:
        size: 7
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      and is not rolled back to revision 1 (version 1.0.0): validating stored objects for CRD "tests.e2e-${SCENARIO_ID}.example.com": 2 of 2 would not be valid in version v1: ${TEST_NAMESPACE}/red: spec.color: the schema has no such field, so its value would be lost; ${TEST_NAMESPACE}/seven: spec.size: 7 is more than the maximum 5
      """
    And ClusterExtension has 2 revisions
    When resource "tests.e2e-${SCENARIO_ID}.example.com/red" is changed
      """
      spec:
        color: null
      """
    And resource "tests.e2e-${SCENARIO_ID}.example.com/seven" is changed
      """
      spec:
        size: 4
      """
    Then ClusterExtension reports Progressing as False with Reason RolledBack
    And ClusterExtension has 3 revisions

  Scenario: A former revision returns on request and stays while the spec names it
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap                 |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap, ExtraConfigMap |
    And catalog "test" version "v3" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.2   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          approval: Automatic
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
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And ClusterObjectSet "${NAME}-1" is archived
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          rollBackTo: 7
      """
    Then ClusterExtension reports Progressing as False with Reason Blocked and Message includes:
      """
      spec.rollout.rollBackTo names revision 7, which does not exist; revisions that exist: 2 (version 1.0.1), 1 (version 1.0.0).
      """
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: true
          rollBackTo: 1
      """
    Then ClusterExtension reports Progressing as False with Reason Paused
    And bundle "${PACKAGE:test}.1.0.1" remains installed in version "1.0.1"
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          paused: null
      """
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And ClusterExtension reports RolledBack as True with Reason RollBackRequested and Message includes:
      """
      spec.rollout.rollBackTo holds the extension at the content of revision 1, version 1.0.0. It was rolled back from version 1.0.1.
      """
    And ClusterExtension reports Ready as True with Reason Succeeded and Message includes:
      """
      It was rolled back; see RolledBack.
      """
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is not installed
    And ClusterExtension has 3 revisions
    When catalog "test" is updated to version "v3"
    Then ClusterExtension reports UpgradeAvailable as True with Reason RolledBack and Message includes:
      """
      Version 1.0.2
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          rollBackTo: null
      """
    Then bundle "${PACKAGE:test}.1.0.2" is installed in version "1.0.2"
    And ClusterExtension has events: RolledBack, RollBackEnded

  Scenario: A new revision soaks before the former one goes
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
          soak: 20s
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Soaking and Message includes:
      """
      Revision 1.0.0 is available; it has rolled out if it stays available until
      """
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    When catalog "test" is updated to version "v2"
    Then ClusterObjectSet "${NAME}-2" reports Progressing as True with Reason Soaking
    And ClusterObjectSet "${NAME}-2" reports Available as True with Reason ProbesSucceeded
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension reports "${NAME}-1, ${NAME}-2" as active revisions
    And bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And ClusterObjectSet "${NAME}-1" is archived
    And ClusterExtension has events: Soaking, Upgraded

  Scenario: A failure during the soak rolls an approved upgrade back, without another approval
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
          approval: Manual
          onFailure: RollBack
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
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          soak: 10m
      """
    When catalog "test" is updated to version "v2"
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    When the pending plan is approved
    Then ClusterObjectSet "${NAME}-2" reports Progressing as True with Reason Soaking
    When deployment "test-operator-${SCENARIO_ID}" reports as not ready
    Then ClusterObjectSet "${NAME}-3" reports Available as False with Reason ProbeFailure
    When deployment "test-operator-${SCENARIO_ID}" reports as ready
    Then ClusterObjectSet "${NAME}-3" reports Succeeded as True with Reason Succeeded
    And ClusterExtension reports Progressing as False with Reason RolledBack and Message includes:
      """
      Failure: Revision 1.0.1 did not stay available for the time that spec.soak demands
      """
    And no plan is pending
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension has 3 revisions
    And ClusterExtension has events: Soaking, RolledBack
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          soak: null
      """
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    And ClusterExtension reports Progressing as True with Reason AwaitingApproval
