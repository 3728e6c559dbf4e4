Feature: End of support
  Lifecycles in a catalog say until when the installed version is supported. They never change what is installed.

  Background:
    Given OLM is available
    And an image registry is available
    And namespace "${TEST_NAMESPACE}" is available

  Scenario: Support goes on, ends soon, ends, becomes unreadable and is no longer known
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                                                     |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Support(Full support -100 +100; Maintenance support +101 +400)    |
    And catalog "test" version "soon" with packages:
      | package | version | channel | replaces | contents                                                                     |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Support(Full support -100 -10; Maintenance support -9 +30)        |
    And catalog "test" version "ended" with packages:
      | package | version | channel | replaces | contents                                                                     |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Support(Full support -100 -10)                                    |
      | test    | 1.1.0   | beta    |          | ConfigMap, Support(Full support -100 +100)                                   |
    And catalog "test" version "unreadable" with packages:
      | package | version | channel | replaces | contents                                                                     |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Support(until further notice)                                     |
    And catalog "test" version "none" with packages:
      | package | version | channel | replaces | contents                                                                     |
      | test    | 1.0.0   | alpha   |          | ConfigMap                                                                    |
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
    And ClusterExtension reports EndOfSupport as False with Reason Supported and Message includes:
      """
      Version 1.0 is in support phase "Full support" until the end of ${DAY:+100}, followed by phase "Maintenance support". Support ends with ${DAY:+400}.
      """
    And the metrics say that support ends after day +400
    And "kubectl olm show ${PACKAGE:test} --catalog ${CATALOG:test}" says:
      """
      until ${DAY:+400} (now Full support)
      """
    When catalog "test" is updated to version "soon"
    Then ClusterExtension reports EndOfSupport as False with Reason EndingSoon and Message includes:
      """
      Support ends with ${DAY:+30}. Upgrade to a later version before that.
      """
    And ClusterExtension has events: SupportEndingSoon
    And the metrics say that support ends after day +30
    And "kubectl olm versions ${PACKAGE:test} --catalog ${CATALOG:test}" says:
      """
      ends soon: ${DAY:+30} (now Maintenance support)
      """
    When catalog "test" is updated to version "ended"
    Then ClusterExtension reports EndOfSupport as True with Reason Ended and Message includes:
      """
      Support of version 1.0 ended with ${DAY:-10}. Upgrade to a supported version.
      """
    And ClusterExtension has events: SupportEnded
    And the metrics say that support ends after day -10
    And "kubectl olm why ${NAME}" says:
      """
      Support of version 1.0 ended with ${DAY:-10}.
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension reports Ready as True with Reason Succeeded
    When catalog "test" is updated to version "unreadable"
    Then ClusterExtension reports EndOfSupport as Unknown with Reason SupportUnknown and Message includes:
      """
      The end of support of version 1.0 is unknown: the lifecycle of version "1.0" is ignored: phases is no list.
      """
    And the metrics do not say when support ends
    And "kubectl olm show ${PACKAGE:test} --catalog ${CATALOG:test}" says:
      """
      the lifecycle of version "1.0" is ignored: phases is no list
      """
    And bundle "${PACKAGE:test}.1.0.0" remains installed in version "1.0.0"
    And ClusterExtension reports Progressing as True with Reason Succeeded
    When catalog "test" is updated to version "none"
    Then ClusterExtension has no condition EndOfSupport

  Scenario: A package whose support has ended is installed nevertheless
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents                                   |
      | test    | 1.0.0   | alpha   |          | ConfigMap, Support(Full support -100 +100) |
      | test    | 1.1.0   | alpha   | 1.0.0    | ConfigMap, Support(Full support -100 -10)  |
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
    And bundle "${PACKAGE:test}.1.1.0" is installed in version "1.1.0"
    And ClusterExtension reports EndOfSupport as True with Reason Ended
    And the metrics say that support ends after day -10
    When ClusterExtension is removed
    Then the metrics do not say when support ends

  Scenario: A catalog without lifecycles says nothing
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
            packageName: ${PACKAGE:test}
            selector:
              matchLabels:
                olm.operatorframework.io/metadata.name: ${CATALOG:test}
      """
    Then ClusterExtension is rolled out
    And ClusterExtension has no condition EndOfSupport
    And the metrics do not say when support ends
