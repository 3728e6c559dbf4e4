Feature: Several namespaces that an operator watches
  A bundle that supports MultiNamespace watches a list of namespaces, or those with certain labels. The operator's roles follow them.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents                                |
      | test    | 1.0.0   | alpha   |          | Deployment, InstallMode(MultiNamespace) |
    And resource is applied
      """
      apiVersion: v1
      kind: Namespace
      metadata:
        name: ${TEST_NAMESPACE}-a
        labels:
          team: team-${SCENARIO_ID}
      """
    And resource is applied
      """
      apiVersion: v1
      kind: Namespace
      metadata:
        name: ${TEST_NAMESPACE}-b
      """

  Scenario: A list of namespaces
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
            watchNamespaces:
            - ${TEST_NAMESPACE}-b
            - ${TEST_NAMESPACE}-a
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"
    When ClusterExtension is updated
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
            watchNamespaces:
            - ${TEST_NAMESPACE}-b
            watchNamespaceSelector:
              matchLabels:
                team: team-${SCENARIO_ID}
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
      field "watchNamespaceSelector" cannot be combined with field "watchNamespaces"
      """
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"

  Scenario: Namespaces come and go
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
            watchNamespaceSelector:
              matchLabels:
                team: team-${SCENARIO_ID}
              matchExpressions:
              - {key: frozen, operator: DoesNotExist}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-a"
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a"
    And ClusterObjectSet "${NAME}-1" contains annotation "olm.operatorframework.io/selected-namespaces" with value
      """
      ${TEST_NAMESPACE}-a
      """
    When resource "namespace/${TEST_NAMESPACE}-b" is changed
      """
      metadata:
        labels:
          team: team-${SCENARIO_ID}
      """
    Then operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"
    And ClusterExtension is rolled out
    And ClusterExtension reports "${NAME}-2" as active revision
    When resource "namespace/${TEST_NAMESPACE}-a" is changed
      """
      metadata:
        labels:
          frozen: "yes"
      """
    Then operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-b"
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-b"
    And ClusterExtension is rolled out
    When resource is applied
      """
      apiVersion: v1
      kind: Namespace
      metadata:
        name: ${TEST_NAMESPACE}-c
        labels:
          team: team-${SCENARIO_ID}
      """
    Then operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-b,${TEST_NAMESPACE}-c"
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-b,${TEST_NAMESPACE}-c"
    When resource "namespace/${TEST_NAMESPACE}-b" is removed
    Then operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-c"
    And resource "namespace/${TEST_NAMESPACE}-b" is eventually not found
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-c"
    And ClusterExtension is rolled out
    And ClusterExtension is available
    And ClusterExtension reports "${NAME}-5" as active revision
    And ClusterObjectSet "${NAME}-4" is archived
    When ClusterExtension is removed
    Then the ClusterExtension's constituent resources are removed

  Scenario: A burst of namespaces is one revision
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
            watchNamespaceSelector:
              matchLabels:
                team: team-${SCENARIO_ID}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When 5 namespaces "${TEST_NAMESPACE}-burst" are created with label "team" as "team-${SCENARIO_ID}"
    Then the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-burst-0,${TEST_NAMESPACE}-burst-1,${TEST_NAMESPACE}-burst-2,${TEST_NAMESPACE}-burst-3,${TEST_NAMESPACE}-burst-4"
    And ClusterExtension is rolled out
    And ClusterExtension has 2 revisions

  Scenario: No namespace matches
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
            watchNamespaceSelector:
              matchExpressions:
              - {key: team, operator: In, values: [other-${SCENARIO_ID}]}
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
      no namespace matches watchNamespaceSelector: label the namespaces that the operator is to watch
      """
    And ClusterExtension has 0 revisions
    When resource "namespace/${TEST_NAMESPACE}-b" is changed
      """
      metadata:
        labels:
          team: other-${SCENARIO_ID}
      """
    Then ClusterExtension is rolled out
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-b"
    When resource "namespace/${TEST_NAMESPACE}-b" is changed
      """
      metadata:
        labels:
          team: null
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      no namespace matches watchNamespaceSelector
      """
    And operator "test-operator-${SCENARIO_ID}" target namespace is "${TEST_NAMESPACE}-b"
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-b"
    And ClusterExtension is available
    And ClusterExtension has 1 revision

  Scenario: A namespace that joins waits for its approval
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        rollout:
          approval: Manual
        config:
          configType: Inline
          inline:
            watchNamespaceSelector:
              matchLabels:
                team: team-${SCENARIO_ID}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then the pending plan is for bundle "${PACKAGE:test}.1.0.0"
    When the pending plan is approved
    Then ClusterExtension is rolled out
    And no plan is pending
    When resource "namespace/${TEST_NAMESPACE}-b" is changed
      """
      metadata:
        labels:
          team: team-${SCENARIO_ID}
      """
    Then ClusterExtension reports Progressing as True with Reason AwaitingApproval
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a"
    And the pending plan is for bundle "${PACKAGE:test}.1.0.0"
    When the pending plan is approved
    Then the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"
    And ClusterExtension is rolled out

  Scenario: A service account needs its rights in a namespace that joins
    Given resource is applied
      """
      apiVersion: v1
      kind: ServiceAccount
      metadata:
        name: installer
        namespace: ${TEST_NAMESPACE}
      """
    And the service accounts of the namespace may install everything in namespaces "${TEST_NAMESPACE},${TEST_NAMESPACE}-a"
    When ClusterExtension is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterExtension
      metadata:
        name: ${NAME}
      spec:
        namespace: ${TEST_NAMESPACE}
        serviceAccount:
          name: installer
        config:
          configType: Inline
          inline:
            watchNamespaceSelector:
              matchLabels:
                team: team-${SCENARIO_ID}
        source:
          sourceType: Catalog
          catalog:
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    When resource "namespace/${TEST_NAMESPACE}-b" is changed
      """
      metadata:
        labels:
          team: team-${SCENARIO_ID}
      """
    Then ClusterExtension reports Progressing as True with Reason Retrying and Message includes:
      """
      Namespace:"${TEST_NAMESPACE}-b" APIGroups:[rbac.authorization.k8s.io] Resources:[rolebindings
      """
    And the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a"
    When the service accounts of the namespace may install everything in namespaces "${TEST_NAMESPACE}-b"
    Then the roles of ClusterExtension are in namespaces "${TEST_NAMESPACE}-a,${TEST_NAMESPACE}-b"
    And ClusterExtension is rolled out
