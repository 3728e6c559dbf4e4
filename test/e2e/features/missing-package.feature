Feature: A package that no catalog has
  The message names the package, nothing is left behind, and the installation continues when the package appears.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: The package appears later
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | other   | 1.0.0   | alpha   |          | ConfigMap |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents  |
      | other   | 1.0.0   | alpha   |          | ConfigMap |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
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
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      no bundles found for package "${PACKAGE:test}"
      """
    And ClusterExtension reports Installed as False with Reason Failed and Message includes:
      """
      No bundle installed
      """
    And ClusterExtension has 0 revisions
    When catalog "test" is updated to version "v2"
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"

  Scenario: The package is misspelt
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
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}x
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      Did you mean "${PACKAGE:test}"?
      """
