Feature: Progress deadline
  A rollout that takes longer than spec.progressDeadlineMinutes is reported as failed. It continues when it can, and a change
  of the spec takes precedence over it.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available
    And min value for ClusterExtension .spec.progressDeadlineMinutes is set to 1
    And min value for ClusterObjectSet .spec.progressDeadlineMinutes is set to 1

  Scenario: A rollout with a missing image fails, and another version fixes it
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                 |
      | test    | 1.0.0   | alpha   |          | CRD, BadImage, ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, BadImage, ConfigMap   |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        progressDeadlineMinutes: 1
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason RollingOut and Message includes:
      """
      Revision 1.0.0 is rolling out. Deployment ${TEST_NAMESPACE}/test-operator-${SCENARIO_ID} is not available: pod test-operator-${SCENARIO_ID}-
      """
    And ClusterExtension reports Ready as False with Reason RollingOut and Message includes:
      """
      cannot start: ImagePullBackOff: "the test says so".
      """
    And ClusterObjectSet "${NAME}-1" reports Available as False with Reason ProbeFailure
    And ClusterObjectSet "${NAME}-1" reports Progressing as False with Reason ProgressDeadlineExceeded
    And ClusterExtension reports Progressing as False with Reason ProgressDeadlineExceeded and Message includes:
      """
      Revision has not rolled out for 1 minute(s). Last status: Revision 1.0.0 is rolling out.
      """
    And ClusterExtension reports Stalled as True with Reason ProgressDeadlineExceeded
    And ClusterExtension reports Ready as False with Reason ProgressDeadlineExceeded
    And ClusterExtension has events: ProgressDeadlineExceeded
    When catalog "test" is updated to version "v2"
    Then bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And ClusterExtension is rolled out
    And ClusterObjectSet "${NAME}-1" is archived

  Scenario: A workload that is ready after the deadline is ready
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | Deployment, ConfigMap |
    And deployment "test-operator-${SCENARIO_ID}" reports as not ready
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        progressDeadlineMinutes: 1
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason RollingOut
    And ClusterObjectSet "${NAME}-1" reports Progressing as False with Reason ProgressDeadlineExceeded
    When deployment "test-operator-${SCENARIO_ID}" reports as ready
    Then ClusterObjectSet "${NAME}-1" reports Succeeded as True with Reason Succeeded
    And ClusterExtension is rolled out
    And ClusterExtension reports Ready as True with Reason Succeeded
