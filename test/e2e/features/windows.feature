Feature: Windows
  Upgrades wait for a window of spec.rollout.windows; installations and rollbacks do not.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: An upgrade waits for its window
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
          windows:
            - schedule: 0 0 29 FEB *
              durationMinutes: 1
              timeZone: Europe/Berlin
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
    Then ClusterExtension reports Progressing as True with Reason AwaitingWindow and Message includes:
      """
      02-28T23:00:00Z
      """
    And the pending plan is for bundle "${PACKAGE:test}.1.0.1"
    And ClusterExtension reports Ready as True with Reason Succeeded
    And ClusterExtension reports UpgradeAvailable as True with Reason AwaitingWindow
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    When upgrades are limited to a window that opens within two minutes
    Then bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And version "1.0.1" is installed once the window opens
    And no plan is pending
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          rollBackTo: 1
          windows:
            - schedule: 0 0 29 FEB *
              durationMinutes: 1
              timeZone: Europe/Berlin
      """
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    And no plan is pending
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          rollBackTo: null
      """
    Then ClusterExtension reports Progressing as True with Reason AwaitingWindow
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"

  Scenario: A time zone that does not exist
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
        rollout:
          windows:
            - schedule: 0 22 * * SAT
              durationMinutes: 240
              timeZone: Europe/Atlantis
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as False with Reason Blocked and Message includes:
      """
      spec.rollout.windows[0].timeZone "Europe/Atlantis" is not in the IANA time zone database
      """
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          windows: null
      """
    Then bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
