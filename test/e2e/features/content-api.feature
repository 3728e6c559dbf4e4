Feature: The content API
  The content of a catalog is served over HTTPS: complete, in parts, and by query.

  Background:
    Given OLM is available
    And an image registry is available
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | first   | 1.0.0   | alpha   |          | ConfigMap |
      | first   | 1.1.0   | alpha   | 1.0.0    | ConfigMap |
      | second  | 1.0.0   | beta    |          | ConfigMap |

  Scenario: The complete content, and unchanged content
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
    Then the response status is 200
    And the response has header "content-type": application/jsonl
    And the response has header "accept-ranges": bytes
    And the response has 7 lines
    When a client requests: HEAD /catalogs/${CATALOG:test}/api/v1/all
    Then the response status is 200
    And the response has no body
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
      | If-None-Match | ${ETAG} |
    Then the response status is 304
    And the response has header "etag": ${ETAG}
    And the response has no body
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
      | If-Match | "other" |
    Then the response status is 412

  Scenario: Byte ranges and compression
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
      | Range           | bytes=10-99 |
      | Accept-Encoding | gzip        |
    Then the response status is 206
    And the response body equals bytes 10 to 99 of /catalogs/${CATALOG:test}/api/v1/all
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
      | Range | bytes=99999999- |
    Then the response status is 416
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
      | Accept-Encoding | gzip |
    Then the response status is 200
    And the response has header "vary": Accept-Encoding
    And the response body, decoded from gzip, equals /catalogs/${CATALOG:test}/api/v1/all
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/all
      | Accept-Encoding | gzip, zstd |
    Then the response body, decoded from zstd, equals /catalogs/${CATALOG:test}/api/v1/all

  Scenario: Selected objects and fields
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/metas?schema=olm.bundle&package=${PACKAGE:first}
    Then the response status is 200
    And the response has 2 lines
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/metas?schema=olm.package&name=${PACKAGE:second}
    Then the response body is:
      """
      {"defaultChannel":"beta","name":"${PACKAGE:second}","schema":"olm.package"}
      """
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/metas?package=${PACKAGE:first}&schema=olm.channel&fields=name,entries.name
    Then the response body is:
      """
      {"entries":[{"name":"${PACKAGE:first}.1.0.0"},{"name":"${PACKAGE:first}.1.1.0"}],"name":"alpha"}
      """
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/metas?name=nothing
    Then the response status is 200
    And the response has no body
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/metas?packages=typo
    Then the response status is 400
    And the response body is:
      """
      400 Bad Request
      """
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/metas?fields=a..b
    Then the response status is 400

  Scenario: The list of catalogs and the OpenAPI document
    When a client requests: GET /catalogs/${CATALOG:test}
    Then the response status is 200
    And the response body includes:
      """
      "name":"${CATALOG:test}"
      "counts":{"metas":7,"packages":2,"channels":2,"bundles":3}
      "schemas":{"olm.bundle":3,"olm.channel":2,"olm.package":2}
      "graphql":"/catalogs/${CATALOG:test}/api/v1/graphql"
      """
    When a client requests: GET /catalogs
    Then the response status is 200
    And the response body includes:
      """
      "name":"${CATALOG:test}"
      """
    When a client requests: GET /openapi.json
    Then the response status is 200
    And the response body includes:
      """
      "/catalogs/{catalog}/api/v1/metas"
      """

  Scenario: GraphQL queries
    When a client requests: POST /catalogs/${CATALOG:test}/api/v1/graphql
      """
      {"query": "{ olmbundles(limit: 1) { name properties { type } } summary { totalSchemas } }"}
      """
    Then the response status is 200
    And the response body is:
      """
      {"data":{"olmbundles":[{"name":"${PACKAGE:first}.1.0.0","properties":[{"type":"olm.package"}]}],"summary":{"totalSchemas":3}}}
      """
    When a client requests: POST /catalogs/${CATALOG:test}/api/v1/graphql
      """
      {"query": "{ nothing }"}
      """
    Then the response status is 200
    And the response body includes:
      """
      "errors"
      """
    When a client requests: GET /catalogs/${CATALOG:test}/api/v1/graphql
    Then the response status is 405
    And the response has header "allow": POST

  Scenario: Missing content and invalid requests
    When a client requests: DELETE /catalogs/${CATALOG:test}/api/v1/all
    Then the response status is 405
    And the response has header "allow": GET, HEAD
    When a client requests: GET /catalogs/nothing/api/v1/all
    Then the response status is 404
    When a client requests: GET /catalogs/Not_A_Name/api/v1/all
    Then the response status is 400
    When a client requests: GET /catalogs/${CATALOG:test}/api/v2/all
    Then the response status is 404
