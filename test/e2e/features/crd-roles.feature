Feature: Roles for custom resources
  Users with Kubernetes' roles view, edit and admin in a namespace can use the APIs of an extension; see docs/operations.md.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A user who may edit a namespace can use a custom resource
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents       |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap |
    When resource is applied
      """
      apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata:
        name: editors
        namespace: ${TEST_NAMESPACE}
      roleRef:
        apiGroup: rbac.authorization.k8s.io
        kind: ClusterRole
        name: edit
      subjects:
      - apiGroup: rbac.authorization.k8s.io
        kind: User
        name: editor-${SCENARIO_ID}
      """
    And resource is applied
      """
      apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata:
        name: viewers
        namespace: ${TEST_NAMESPACE}
      roleRef:
        apiGroup: rbac.authorization.k8s.io
        kind: ClusterRole
        name: view
      subjects:
      - apiGroup: rbac.authorization.k8s.io
        kind: User
        name: viewer-${SCENARIO_ID}
      """
    And ClusterExtension is applied
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
    And user "editor-${SCENARIO_ID}" may create "tests.e2e-${SCENARIO_ID}.example.com"
    And user "editor-${SCENARIO_ID}" may list "tests.e2e-${SCENARIO_ID}.example.com"
    And user "viewer-${SCENARIO_ID}" may list "tests.e2e-${SCENARIO_ID}.example.com"
    And user "viewer-${SCENARIO_ID}" may not create "tests.e2e-${SCENARIO_ID}.example.com"
    When ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
    And user "editor-${SCENARIO_ID}" may not create "tests.e2e-${SCENARIO_ID}.example.com"

  Scenario: A ClusterRole of somebody else stays
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents       |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap |
    When resource is applied
      """
      apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRole
      metadata:
        name: tests.e2e-${SCENARIO_ID}.example.com-edit
      rules: []
      """
    And ClusterExtension is applied
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
    And ClusterExtension has events: CrdRolesLeftOut
    And resource "clusterrole/tests.e2e-${SCENARIO_ID}.example.com-view" is installed
    When ClusterExtension is removed
    Then resource "clusterrole/tests.e2e-${SCENARIO_ID}.example.com-edit" is installed
    And resource "clusterrole/tests.e2e-${SCENARIO_ID}.example.com-view" is eventually not found
