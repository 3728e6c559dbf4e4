Feature: A range of versions
  The highest version in the range is installed, and upgrades stay in the range.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario Outline: The highest version in "<range>" is <version>
    Given a catalog "test" with packages:
      | package | version    | channel | replaces | contents  |
      | test    | 1.0.0      | alpha   |          | ConfigMap |
      | test    | 1.4.2      | alpha   |          | ConfigMap |
      | test    | 1.5.0-rc.1 | alpha   |          | ConfigMap |
      | test    | 2.1.0      | alpha   |          | ConfigMap |
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
            version: "<range>"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.<version>" is installed in version "<version>"

    Examples:
      | range            | version    |
      | 1.x              | 1.4.2      |
      | >=1.0.0 <1.4.0   | 1.0.0      |
      | ~1.4             | 1.4.2      |
      | ^2               | 2.1.0      |
      | <1.1 \|\| >=2    | 2.1.0      |
      | 1.5.0-rc.1       | 1.5.0-rc.1 |

  Scenario: A successor outside the range is not installed
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
      | test    | 1.0.1   | alpha   | 1.0.0    | CRD, Deployment, ConfigMap |
      | test    | 1.0.2   | alpha   | 1.0.1    | CRD, Deployment, ConfigMap |
      | test    | 2.0.0   | beta    | 1.0.2    | CRD, Deployment, ConfigMap |
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
            version: ">=1.0.0 <1.0.2"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.1" is installed in version "1.0.1"
    And bundle "${PACKAGE:test}.1.0.1" remains installed in version "1.0.1"
