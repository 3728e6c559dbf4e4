Feature: Handover between revisions
  Objects of both revisions are handed over unchanged. Objects of the old revision only stay until the new one is available. A
  change of the spec takes precedence over a rollout in progress.

  The name of a ClusterRole is cut from the bundle's name and a hash of 41 to 44 characters, 63 characters in all. The package's
  name is so long that the bundle's version is always cut off: all versions bring the same ClusterRoles.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: Common objects are never deleted, and other objects are deleted last
    Given a catalog "test" with packages:
      | package     | version | channel | replaces | contents                                   |
      | handed-over | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap, ExtraConfigMap |
    And catalog "test" version "v2" with packages:
      | package     | version | channel | replaces | contents                                   |
      | handed-over | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap, ExtraConfigMap |
      | handed-over | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap                 |
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
            packageName: ${PACKAGE:handed-over}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:handed-over}.1.0.0" is installed in version "1.0.0"
    When the objects of ClusterExtension are recorded
    And deployment "test-operator-${SCENARIO_ID}" reports as not ready
    And catalog "test" is updated to version "v2"
    Then ClusterObjectSet "${NAME}-2" reports Available as False with Reason ProbeFailure
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.1
      """
    And bundle "${PACKAGE:handed-over}.1.0.0" is installed in version "1.0.0"
    And none of the recorded objects was deleted
    When deployment "test-operator-${SCENARIO_ID}" reports as ready
    Then bundle "${PACKAGE:handed-over}.1.0.1" is installed in version "1.0.1"
    And ClusterObjectSet "${NAME}-1" is archived
    And resource "configmap/extra-configmap-${SCENARIO_ID}" is eventually not found
    And none of the recorded objects was deleted except "configmap/extra-configmap-${SCENARIO_ID}"

  Scenario: A return from a stuck rollout
    Given a catalog "test" with packages:
      | package     | version | channel | replaces | contents                   |
      | handed-over | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | handed-over | 1.0.1   | alpha   | 1.0.0    | CRD, BadImage, ConfigMap   |
      | handed-over | 1.0.2   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
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
            packageName: ${PACKAGE:handed-over}
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When the objects of ClusterExtension are recorded
    And ClusterExtension is updated
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
            packageName: ${PACKAGE:handed-over}
            version: 1.0.1
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterObjectSet "${NAME}-2" reports Available as False with Reason ProbeFailure
    And ClusterExtension reports "${NAME}-1, ${NAME}-2" as active revisions
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
            packageName: ${PACKAGE:handed-over}
            version: 1.0.2
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then bundle "${PACKAGE:handed-over}.1.0.2" is installed in version "1.0.2"
    And ClusterExtension is rolled out
    And ClusterExtension reports Ready as True with Reason Succeeded
    And ClusterObjectSet "${NAME}-1" is archived
    And ClusterObjectSet "${NAME}-2" is archived
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.0.2
      """
    And none of the recorded objects was deleted
