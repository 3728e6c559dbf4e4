Feature: Probes with expressions
  A ClusterObjectSet waits until an expression (CEL) on its objects is true, and says what it waits for. An expression that
  cannot be evaluated is named.

  Background:
    Given OLM is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: A rollout waits for an expression
    When resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterObjectSet
      metadata:
        name: ${NAME}-gated-1
      spec:
        lifecycleState: Active
        revision: 1
        collisionProtection: Prevent
        phases:
          - name: gate
            objects:
              - object:
                  apiVersion: v1
                  kind: ConfigMap
                  metadata:
                    name: gate-${SCENARIO_ID}
                    namespace: ${TEST_NAMESPACE}
          - name: behind
            objects:
              - object:
                  apiVersion: v1
                  kind: ConfigMap
                  metadata:
                    name: behind-${SCENARIO_ID}
                    namespace: ${TEST_NAMESPACE}
        progressionProbes:
          - selector:
              type: GroupKind
              groupKind:
                group: ""
                kind: ConfigMap
            assertions:
              - type: CELExpression
                celExpression:
                  expression: "!self.metadata.name.startsWith('gate-') || self.data.gate.lowerAscii() == 'open'"
                  message: the gate is not open
      """
    Then ClusterObjectSet "${NAME}-gated-1" reports Available as False with Reason ProbeFailure and Message includes:
      """
      Object ConfigMap.v1 ${TEST_NAMESPACE}/gate-${SCENARIO_ID}: the gate is not open (the expression has no value: No such key: data)
      """
    And resource "configmap/behind-${SCENARIO_ID}" is not installed
    When resource "configmap/gate-${SCENARIO_ID}" is changed
      """
      data:
        gate: shut
      """
    Then ClusterObjectSet "${NAME}-gated-1" reports Available as False with Reason ProbeFailure and Message includes:
      """
      Object ConfigMap.v1 ${TEST_NAMESPACE}/gate-${SCENARIO_ID}: the gate is not open
      """
    And resource "configmap/behind-${SCENARIO_ID}" is not installed
    When resource "configmap/gate-${SCENARIO_ID}" is changed
      """
      data:
        gate: Open
      """
    Then ClusterObjectSet "${NAME}-gated-1" reports Succeeded as True with Reason Succeeded
    And resource "configmap/behind-${SCENARIO_ID}" is installed
    When resource "clusterobjectset/${NAME}-gated-1" is removed
    Then resource "configmap/behind-${SCENARIO_ID}" is eventually not found

  Scenario: An expression that cannot be evaluated is named, and does not hold up the deletion
    When resource is applied
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterObjectSet
      metadata:
        name: ${NAME}-wrong-1
      spec:
        lifecycleState: Active
        revision: 1
        collisionProtection: Prevent
        phases:
          - name: only
            objects:
              - object:
                  apiVersion: v1
                  kind: ConfigMap
                  metadata:
                    name: wrong-${SCENARIO_ID}
                    namespace: ${TEST_NAMESPACE}
        progressionProbes:
          - selector:
              type: GroupKind
              groupKind:
                group: ""
                kind: ConfigMap
            assertions:
              - type: CELExpression
                celExpression:
                  expression: object.data.ready == 'yes'
      """
    Then ClusterObjectSet "${NAME}-wrong-1" reports Progressing as False with Reason Blocked and Message includes:
      """
      spec.progressionProbes[0].assertions[0].celExpression.expression is refused: variable "object" is unknown; the object is called self; correct the expression "object.data.ready == 'yes'"
      """
    And resource "configmap/wrong-${SCENARIO_ID}" is not installed
    When resource "clusterobjectset/${NAME}-wrong-1" is changed
      """
      spec:
        progressionProbes:
          - selector:
              type: GroupKind
              groupKind:
                group: ""
                kind: ConfigMap
            assertions:
              - type: CELExpression
                celExpression:
                  expression: "['aaaa'].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x)[0] != self"
      """
    Then ClusterObjectSet "${NAME}-wrong-1" reports Progressing as False with Reason Blocked and Message includes:
      """
      celExpression.expression is refused: it could take more than 100000 steps
      """
    When resource "clusterobjectset/${NAME}-wrong-1" is removed
    Then resource "clusterobjectset/${NAME}-wrong-1" is eventually not found

  Scenario: The API server refuses an assertion of another type with an expression
    Then resource is refused because "celExpression is required when type is CELExpression, and forbidden otherwise"
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterObjectSet
      metadata:
        name: ${NAME}-refused-1
      spec:
        lifecycleState: Active
        revision: 1
        collisionProtection: Prevent
        progressionProbes:
          - selector:
              type: GroupKind
              groupKind:
                group: ""
                kind: ConfigMap
            assertions:
              - type: FieldValue
                fieldValue:
                  fieldPath: data.ready
                  value: "yes"
                celExpression:
                  expression: "true"
      """
    And resource is refused because "celExpression.expression"
      """
      apiVersion: olm.operatorframework.io/v1
      kind: ClusterObjectSet
      metadata:
        name: ${NAME}-refused-1
      spec:
        lifecycleState: Active
        revision: 1
        collisionProtection: Prevent
        progressionProbes:
          - selector:
              type: GroupKind
              groupKind:
                group: ""
                kind: ConfigMap
            assertions:
              - type: CELExpression
                celExpression:
                  expression: ""
      """
