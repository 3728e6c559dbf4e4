Feature: Certificates of webhooks
  operator-controller issues certificates if no other issuer does, and renews them without interruption.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A certificate is renewed
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                  |
      | test    | 1.0.0   | alpha   |          | CRD, Deployment, Webhooks |
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
    And the serving certificate is trusted by its webhooks
    When the serving certificate is due for renewal
    Then the next certificate is in use and trusted together with the previous one
    And ClusterExtension is rolled out
    And ClusterObjectSet "${NAME}-1" is archived
    And the ClusterExtension's objects are no longer written
