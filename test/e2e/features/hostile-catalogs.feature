Feature: Hostile catalogs
  A hostile image is refused with a specific message and does not affect other catalogs.

  Background:
    Given OLM is available
    And an image registry is available

  Scenario Outline: A catalog has an image that <does>
    Given a catalog "test" with packages:
      | package | version | channel | replaces | contents  |
      | test    | 1.0.0   | alpha   |          | ConfigMap |
    And catalog "other" has an image that <does>
    Then catalog "other" reports Progressing as True with Reason Retrying and Message includes:
      """
      <message>
      """
    And catalog "other" is not served
    And catalog "test" serves package "${PACKAGE:test}"

    Examples:
      | does                             | message                                              |
      | is a bomb                        | the layer unpacks to more than 200 times its size    |
      | climbs out of its folder         | is not a name inside the image                       |
      | brings a device                  | configs/null is a character device                   |
      | nests JSON too deep              | a meta is nested deeper than 100 levels              |
      | expands YAML aliases without end | document contains excessive aliasing                 |
