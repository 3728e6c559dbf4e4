Feature: The content API
  What a catalog holds is served over HTTPS: whole, in parts, by query, and told about.

  Background:
    Given OLM is available
    And an image registry is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | first   | 1.0.0   | alpha   |          | ConfigMap |
      | first   | 1.1.0   | alpha   | 1.0.0    | ConfigMap |
      | second  | 1.0.0   | beta    |          | ConfigMap |

  Scenario: Everything, and nothing twice
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
    Then the answer is 200
    And the answer has header "content-type": application/jsonl
    And the answer has header "accept-ranges": bytes
    And the answer has 7 lines
    When the content API is asked: HEAD /catalogs/${CATALOG:test}/api/v1/all
    Then the answer is 200
    And the answer has no body
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
      | If-None-Match | ${ETAG} |
    Then the answer is 304
    And the answer has header "etag": ${ETAG}
    And the answer has no body
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
      | If-Match | "other" |
    Then the answer is 412

  Scenario: A part of the bytes, and compressed ones
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
      | Range           | bytes=10-99 |
      | Accept-Encoding | gzip        |
    Then the answer is 206
    And the answer is bytes 10 to 99 of what /catalogs/${CATALOG:test}/api/v1/all gives
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
      | Range | bytes=99999999- |
    Then the answer is 416
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
      | Accept-Encoding | gzip |
    Then the answer is 200
    And the answer has header "vary": Accept-Encoding
    And the answer, decoded from gzip, is what /catalogs/${CATALOG:test}/api/v1/all gives
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/all
      | Accept-Encoding | gzip, zstd |
    Then the answer, decoded from zstd, is what /catalogs/${CATALOG:test}/api/v1/all gives

  Scenario: Some objects, and parts of them
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/metas?schema=olm.bundle&package=${PACKAGE:first}
    Then the answer is 200
    And the answer has 2 lines
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/metas?schema=olm.package&name=${PACKAGE:second}
    Then the answer's body is:
      """
      {"defaultChannel":"beta","name":"${PACKAGE:second}","schema":"olm.package"}
      """
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/metas?package=${PACKAGE:first}&schema=olm.channel&fields=name,entries.name
    Then the answer's body is:
      """
      {"entries":[{"name":"${PACKAGE:first}.1.0.0"},{"name":"${PACKAGE:first}.1.1.0"}],"name":"alpha"}
      """
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/metas?name=nothing
    Then the answer is 200
    And the answer has no body
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/metas?packages=typo
    Then the answer is 400
    And the answer's body is:
      """
      400 Bad Request
      """
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/metas?fields=a..b
    Then the answer is 400

  Scenario: What is served
    When the content API is asked: GET /catalogs/${CATALOG:test}
    Then the answer is 200
    And the answer's body includes:
      """
      "name":"${CATALOG:test}"
      "counts":{"metas":7,"packages":2,"channels":2,"bundles":3}
      "schemas":{"olm.bundle":3,"olm.channel":2,"olm.package":2}
      "graphql":"/catalogs/${CATALOG:test}/api/v1/graphql"
      """
    When the content API is asked: GET /catalogs
    Then the answer is 200
    And the answer's body includes:
      """
      "name":"${CATALOG:test}"
      """
    When the content API is asked: GET /openapi.json
    Then the answer is 200
    And the answer's body includes:
      """
      "/catalogs/{catalog}/api/v1/metas"
      """

  Scenario: Queries
    When the content API is asked: POST /catalogs/${CATALOG:test}/api/v1/graphql
      """
      {"query": "{ olmbundles(limit: 1) { name properties { type } } summary { totalSchemas } }"}
      """
    Then the answer is 200
    And the answer's body is:
      """
      {"data":{"olmbundles":[{"name":"${PACKAGE:first}.1.0.0","properties":[{"type":"olm.package"}]}],"summary":{"totalSchemas":3}}}
      """
    When the content API is asked: POST /catalogs/${CATALOG:test}/api/v1/graphql
      """
      {"query": "{ nothing }"}
      """
    Then the answer is 200
    And the answer's body includes:
      """
      "errors"
      """
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v1/graphql
    Then the answer is 405
    And the answer has header "allow": POST

  Scenario: What there is not
    When the content API is asked: DELETE /catalogs/${CATALOG:test}/api/v1/all
    Then the answer is 405
    And the answer has header "allow": GET, HEAD
    When the content API is asked: GET /catalogs/nothing/api/v1/all
    Then the answer is 404
    When the content API is asked: GET /catalogs/Not_A_Name/api/v1/all
    Then the answer is 400
    When the content API is asked: GET /catalogs/${CATALOG:test}/api/v2/all
    Then the answer is 404
