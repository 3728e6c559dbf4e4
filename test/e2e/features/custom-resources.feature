Feature: Custom resources outlive their extension
  A CustomResourceDefinition that holds custom resources stays on the cluster, unless the spec says otherwise; see
  docs/deleting.md.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A deletion keeps custom resources, and a new installation adopts them
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
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
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
    And resource "deployment/test-operator-${SCENARIO_ID}" is eventually not found
    And resource "configmap/test-configmap-${SCENARIO_ID}" is eventually not found
    And resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        labels:
          olm.operatorframework.io/kept-from: ${NAME}
      """
    And ClusterExtension has events: CustomResourcesKept, Uninstalled
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
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        labels:
          olm.operatorframework.io/owner-name: ${NAME}
      """
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is no longer labeled as kept
    And resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed
    When resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is removed
    And ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is eventually not found

  Scenario: An extension of another name adopts them
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
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
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And ClusterExtension is removed
    And resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: another-${SCENARIO_ID}
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
    Then ClusterExtension "another-${SCENARIO_ID}" reports Progressing as True with Reason Succeeded and Message includes:
      """
      has rolled out
      """
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        labels:
          olm.operatorframework.io/owner-name: another-${SCENARIO_ID}
      """
    And resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed
    When resource "clusterextension/another-${SCENARIO_ID}" is removed
    Then resource "clusterextension/another-${SCENARIO_ID}" is eventually not found

  Scenario: An upgrade that drops the CustomResourceDefinition keeps custom resources
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents       |
      | test    | 1.0.0   | alpha   |          | CRD, ConfigMap |
      | test    | 2.0.0   | alpha   | 1.0.0    | ConfigMap      |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        deletion:
          customResources: Block
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
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And ClusterExtension is updated
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        deletion:
          customResources: Block
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            version: "2.0.0"
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And bundle "${PACKAGE:test}.2.0.0" is installed in version "2.0.0"
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" matches
      """
      metadata:
        labels:
          olm.operatorframework.io/kept-from: ${NAME}
      """
    And resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed
    And ClusterExtension has events: CustomResourcesKept
    When ClusterExtension is removed
    Then resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed

  Scenario: A deletion with the policy Delete deletes custom resources
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        deletion:
          customResources: Delete
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And ClusterExtension is removed
    Then no object labeled for the ClusterExtension remains
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is eventually not found

  Scenario: A deletion with the policy Block waits with the operator running
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        deletion:
          customResources: Block
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And deletion of ClusterExtension is requested
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      nothing is removed, because spec.deletion.customResources is Block and there are custom resources; delete them, or set the field to Keep or Delete; tests.e2e-${SCENARIO_ID}.example.com holds 1 custom resource
      """
    And resource "deployment/test-operator-${SCENARIO_ID}" is installed
    When resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is removed
    Then ClusterExtension is gone
    And resource "customresourcedefinition/tests.e2e-${SCENARIO_ID}.example.com" is eventually not found

  Scenario: The policy can change during a deletion
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                   |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, ConfigMap |
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        deletion:
          customResources: Block
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource is applied
      """
      apiVersion: e2e-${SCENARIO_ID}.example.com/v1
      kind: Test
      metadata:
        name: precious
        namespace: ${TEST_NAMESPACE}
      """
    And deletion of ClusterExtension is requested
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      spec.deletion.customResources is Block
      """
    When resource "clusterextension/${NAME}" is changed
      """
      spec:
        deletion:
          customResources: Keep
      """
    Then ClusterExtension is gone
    And resource "tests.e2e-${SCENARIO_ID}.example.com/precious" is installed
