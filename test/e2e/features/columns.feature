Feature: Columns
  kubectl get shows upstream's columns, then READY, and with -o wide UPDATE and CATALOG.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: An extension that is installed, waits and fails
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Deployment |
    And catalog "test" version "v2" with packages:
      | package | version | channel | replaces | contents              |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Deployment |
      | test    | 1.0.1   | alpha   | 1.0.0    | ConfigMap, Deployment |
    And deployment "test-operator-${SCENARIO_ID}" reports as not ready
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
    Then kubectl get shows, with -o wide:
      | Installed Bundle | Version | Installed | Progressing | Ready | Update | Catalog |
      |                  |         | False     | True        | False |        |         |
    When deployment "test-operator-${SCENARIO_ID}" reports as ready
    Then kubectl get shows, with -o wide:
      | Installed Bundle      | Version | Installed | Progressing | Ready | Update | Catalog         |
      | ${PACKAGE:test}.1.0.0 | 1.0.0   | True      | True        | True  |        | ${CATALOG:test} |
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          approval: Manual
      """
    And catalog "test" is updated to version "v2"
    Then kubectl get shows, with -o wide:
      | Installed Bundle      | Version | Installed | Progressing | Ready | Update | Catalog         |
      | ${PACKAGE:test}.1.0.0 | 1.0.0   | True      | True        | True  | 1.0.1  | ${CATALOG:test} |
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        rollout:
          approval: Automatic
        source:
          catalog:
            version: "1.0.0"
      """
    Then kubectl get shows, with -o wide:
      | Installed Bundle      | Version | Installed | Progressing | Ready | Update | Catalog         |
      | ${PACKAGE:test}.1.0.0 | 1.0.0   | True      | True        | True  | 1.0.1  | ${CATALOG:test} |
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        source:
          catalog:
            version: "9.9.9"
      """
    Then kubectl get shows, with -o wide:
      | Installed Bundle      | Version | Installed | Progressing | Ready | Update | Catalog         |
      | ${PACKAGE:test}.1.0.0 | 1.0.0   | True      | True        | False |        | ${CATALOG:test} |
