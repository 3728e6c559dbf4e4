Feature: Install an extension
  An administrator applies a ClusterExtension and gets the complete operator, or one sentence with the reason.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: The highest version is installed by default
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
      | test    | 1.2.0   | beta    |          | CRD, Deployment, ConfigMap |
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
    And ClusterExtension is available
    And bundle "${PACKAGE:test}.1.2.0" is installed in version "1.2.0"
    And ClusterExtension reports Available as True with Reason ProbesSucceeded
    And ClusterExtension reports BundleDeprecated as False with Reason NotDeprecated
    And ClusterExtension resources are created and labeled
    And resource "deployment/test-operator-${SCENARIO_ID}" is available
    And resource "configmap/test-configmap-${SCENARIO_ID}" matches
      """
      data:
        version: 1.2.0
      """

  Scenario: The install namespace is created later
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents   |
      | test    | 1.0.0   | alpha   |          | ConfigMap  |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: later-${SCENARIO_ID}
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
      later-${SCENARIO_ID}
      """
    And ClusterExtension reports Installed as False with Reason Failed and Message includes:
      """
      No bundle installed
      """
    When namespace "later-${SCENARIO_ID}" is available
    Then ClusterExtension is rolled out
    And ClusterExtension is available

  Scenario: The configuration selects one namespace to watch
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                                               |
      | test    | 1.0.0   | alpha   |          | Deployment, InstallMode(SingleNamespace), InstallMode(OwnNamespace)    |
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
    Then ClusterExtension reports Progressing as False with Reason InvalidConfiguration and Message includes:
      """
      required field "watchNamespace" is missing. Known fields: watchNamespace (a namespace: any, required); deploymentConfig (affinity, annotations, env
      """
    When namespace "watched-${SCENARIO_ID}" is available
    And ClusterExtension is updated
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
            watchNamespace: watched-${SCENARIO_ID}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And operator "test-operator-${SCENARIO_ID}" target namespace is "watched-${SCENARIO_ID}"

  Scenario: The image comes from a mirror of its registry
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                 |
      | test    | 1.0.0   | alpha   |          | ConfigMap, CRD, Mirrored |
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
    And ClusterExtension reports Installed as True with Reason Succeeded and Message includes:
      """
      Installed bundle mirrored.invalid/bundles/
      """

  Scenario: Properties of the bundle and node selectors of its pods
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                           |
      | test    | 1.0.0   | alpha   |          | Deployment, Property(olm.test-property=some-value) |
    When ClusterExtension is applied
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
            deploymentConfig:
              nodeSelector:
                kubernetes.io/os: linux
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And ClusterObjectSet "${NAME}-1" contains annotation "olm.properties" with value
      """
      [{"type":"olm.test-property","value":"some-value"}]
      """
    And resource "deployment/test-operator-${SCENARIO_ID}" matches
      """
      spec:
        template:
          spec:
            nodeSelector:
              kubernetes.io/os: linux
      """
