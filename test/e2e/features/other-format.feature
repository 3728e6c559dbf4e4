Feature: Images of another format
  An image of another format than registry+v1 is refused, and the message names the format.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A Helm chart
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Format(helm) |
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
    Then ClusterExtension reports Progressing as False with Reason Blocked and Message includes:
      """
      error for resolved bundle "${PACKAGE:test}.1.0.0" with version "1.0.0": the bundle's format is "helm", a Helm chart: only registry+v1 bundles can be installed
      """
    And ClusterExtension has 0 revisions
