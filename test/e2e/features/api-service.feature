Feature: API services
  A bundle's Deployment can serve groups and versions of the Kubernetes API, behind the API server's aggregation layer.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents                           |
      | test    | 1.0.0   | alpha   |          | Deployment, APIService             |
      | test    | 1.1.0   | alpha   | 1.0.0    | Deployment, APIService, ConfigMap  |

  Scenario: An API is registered once its server runs, upgraded, and removed before its server
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
            version: 1.0.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then resource "deployment/test-operator-${SCENARIO_ID}" is available
    And ClusterObjectSet "${NAME}-1" reports Available as False with Reason ProbeFailure
    When the server of the API service answers
    Then ClusterExtension is rolled out
    And clients find the kind of the API service and list its objects
    And resource "apiservice/v1alpha1.served-${SCENARIO_ID}.example.com" matches
      """
      spec:
        groupPriorityMinimum: 2000
        versionPriority: 20
        service:
          name: test-operator-${SCENARIO_ID}-service
          namespace: ${TEST_NAMESPACE}
          port: 5443
      """
    And resource "clusterrolebinding/test-operator-${SCENARIO_ID}-service.${TEST_NAMESPACE}-auth-delegator" matches
      """
      roleRef:
        name: system:auth-delegator
      """
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
            version: 1.1.0
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then bundle "${PACKAGE:test}.1.1.0" is installed in version "1.1.0"
    And ClusterExtension is rolled out
    And clients find the kind of the API service and list its objects
    When a finalizer of a test keeps resource "apiservice/v1alpha1.served-${SCENARIO_ID}.example.com"
    And deletion of ClusterExtension is requested
    Then resource "apiservice/v1alpha1.served-${SCENARIO_ID}.example.com" is being deleted while resource "deployment/test-operator-${SCENARIO_ID}" stays
    When the finalizer of the test is removed from resource "apiservice/v1alpha1.served-${SCENARIO_ID}.example.com"
    Then ClusterExtension is gone
    And the API server no longer knows the group of the API service
    And resource "deployment/test-operator-${SCENARIO_ID}" is eventually not found

  Scenario: A group and version that another server has is refused by name, before anything is written
    Given resource is applied
      """
      apiVersion: apiregistration.k8s.io/v1
      kind: APIService
      metadata:
        name: v1alpha1.served-${SCENARIO_ID}.example.com
      spec:
        group: served-${SCENARIO_ID}.example.com
        version: v1alpha1
        groupPriorityMinimum: 100
        versionPriority: 10
        insecureSkipTLSVerify: true
        service:
          name: theirs
          namespace: default
      """
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
      APIService "v1alpha1.served-${SCENARIO_ID}.example.com" exists and does not belong to this extension: its group and version are served by Service default/theirs
      """
    And ClusterExtension has 0 revisions
    And resource "deployment/test-operator-${SCENARIO_ID}" is not installed
    When resource "apiservice/v1alpha1.served-${SCENARIO_ID}.example.com" is removed
    And ClusterExtension is removed
    Then resource "deployment/test-operator-${SCENARIO_ID}" is not installed
