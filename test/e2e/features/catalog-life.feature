Feature: Lifecycle of a ClusterCatalog
  The image of a catalog is pulled, checked and served. The status names its defects. A deleted catalog leaves nothing behind.

  Background:
    Given OLM is available
    And an image registry is available

  Scenario: Polling detects a moved tag
    Given catalog "test" follows a tag, polled every minute, with packages:
      | package | version | channel | replaces | contents  |
      | first   | 1.0.0   | alpha   |          | ConfigMap |
    Then catalog "test" is serving version "latest"
    And catalog "test" serves package "${PACKAGE:first}"
    When the tag of catalog "test" moves to packages:
      | package | version | channel | replaces | contents  |
      | second  | 1.0.0   | alpha   |          | ConfigMap |
    Then catalog "test" is serving version "latest"
    And catalog "test" serves package "${PACKAGE:second}"

  Scenario: A catalog is created and served
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    Then catalog "test" reports Serving as True with Reason Available and Message includes:
      """
      Serving desired content from resolved source
      """
    And catalog "test" reports Progressing as True with Reason Succeeded and Message includes:
      """
      Successfully unpacked and stored content from resolved source
      """
    And catalog "test" serves package "${PACKAGE:test}"
    And catalog "test" has the finalizer for its content
    And an event of catalog "test" has reason "Pulled"
    And an event of catalog "test" has reason "Unpacked"

  Scenario: A catalog is made unavailable and available again
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    When catalog "test" is set to Unavailable
    Then catalog "test" reports Serving as False with Reason UserSpecifiedUnavailable
    And catalog "test" reports Progressing as True with Reason Succeeded and Message includes:
      """
      Catalog availability mode is set to Unavailable
      """
    And catalog "test" is neither served nor on disk
    And catalog "test" does not have the finalizer for its content
    When catalog "test" is set to Available
    Then catalog "test" reports Serving as True with Reason Available
    And catalog "test" serves package "${PACKAGE:test}"
    And catalog "test" has the finalizer for its content

  Scenario: A deleted catalog leaves nothing behind
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    When catalog "test" is deleted
    Then catalog "test" is neither served nor on disk

  Scenario: A broken image is reported, does not affect other catalogs, and can be fixed
    Given catalog "broken" has an image whose file "deep/catalog.yaml" is not valid
    And a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    Then catalog "broken" reports Progressing as True with Reason Retrying and Message includes:
      """
      file "deep/catalog.yaml" of the catalog is not valid
      """
    And an event of catalog "broken" has reason "UnpackFailed"
    And catalog "test" serves package "${PACKAGE:test}"
    When the image of catalog "broken" is fixed with package "mended"
    Then catalog "broken" reports Progressing as True with Reason Succeeded
    And catalog "broken" serves package "mended"
    When catalog "broken" is deleted
    Then catalog "test" serves package "${PACKAGE:test}"
