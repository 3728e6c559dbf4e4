Feature: Approval
  With spec.rollout.approval or requireApprovalFor, nothing is written before the plan is approved by its digest.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: Manual approval is for one plan
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
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
          approval: Manual
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason AwaitingApproval and Message includes:
      """
      Approve it with: kubectl olm approve ${NAME} --digest sha256:
      """
    And ClusterExtension reports Reconciling as True with Reason AwaitingApproval
    And the pending plan is for bundle "${PACKAGE:test}.1.0.0"
    And ClusterExtension has 0 revisions
    And resource "configmap/test-configmap-${SCENARIO_ID}" is not installed
    When the pending plan is approved
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And no plan is pending
    And an event names the field manager of the approval
    When catalog "test" is updated to version "v2"
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    And ClusterExtension reports UpgradeAvailable as True with Reason AwaitingApproval
    And ClusterExtension reports Ready as True with Reason Succeeded
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension has 1 revision
    When catalog "test" is updated to version "v3"
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.2"
    When the plan before the pending one is approved
    Then bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension reports Progressing as True with Reason AwaitingApproval
    When the pending plan is approved
    Then bundle "${PACKAGE:test}.1.0.2" is installed in version "1.0.2"
    And ClusterExtension is rolled out
    And ClusterExtension has events: AwaitingApproval, Approved, Installed, Upgraded

  Scenario: Only patches are automatic
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents             |
      | test    | 1.0.0   | alpha   |          | Deployment, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | Deployment, ConfigMap |
    And catalog "test" version "v3" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.1   | alpha   |          | Deployment, ConfigMap |
      | test    | 1.1.0   | alpha   | 1.0.1    | Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          automatic: Patch
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
    When catalog "test" is updated to version "v3"
    Then the pending plan is for bundle "${PACKAGE:test}.1.1.0"
    And ClusterExtension reports Progressing as True with Reason AwaitingApproval and Message includes:
      """
      required by spec.rollout (automatic)
      """
    And bundle "${PACKAGE:test}.1.0.1" remains installed in version "1.0.1"
    When the pending plan is approved
    Then bundle "${PACKAGE:test}.1.1.0" is installed in version "1.1.0"

  Scenario: New rights require approval
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | ConfigMap             |
      | test    | 1.0.1   | alpha   | 1.0.0    | ConfigMap, Deployment |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          requireApprovalFor: [NewRights]
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
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    And ClusterExtension reports UpgradeAvailable as True with Reason AwaitingApproval and Message includes:
      """
      requireApprovalFor: NewRights
      """
    When the pending plan is approved
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
