Feature: The lowest version of Kubernetes that a bundle supports
  A bundle whose minKubeVersion is above the cluster's version is not installed, unless an annotation says so.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A bundle that needs a newer cluster waits
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                          |
      | test    | 1.0.0   | alpha   |          | ConfigMap, MinKubeVersion(1.25.0) |
      | test    | 1.1.0   | alpha   | 1.0.0    | ConfigMap, MinKubeVersion(1.99.0) |
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
            version: "1.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
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
            version: "1.1.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      the bundle needs Kubernetes 1.99.0 or newer (minKubeVersion of its CSV), and the cluster has v1.
      """
    And bundle "${PACKAGE:test}.1.0.0" is installed in version "1.0.0"
    When ClusterExtension is updated
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
        annotations:
          olm.operatorframework.io/ignore-min-kube-version: "true"
      spec:
        namespace: ${TEST_NAMESPACE}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: "1.1.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then bundle "${PACKAGE:test}.1.1.0" is installed in version "1.1.0"

  Scenario: The catalog says it, so the image is not pulled
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                            |
      | test    | 1.0.0   | alpha   |          | NoCSV, ListedMinKubeVersion(1.99.0) |
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
      the bundle needs Kubernetes 1.99.0 or newer (minKubeVersion of its CSV), and the cluster has v1.
      """
    When ClusterExtension is updated
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
        annotations:
          olm.operatorframework.io/ignore-min-kube-version: "true"
      spec:
        namespace: ${TEST_NAMESPACE}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: "1.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      no ClusterServiceVersion found
      """
