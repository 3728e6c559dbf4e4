//! Rules of image references. Each is judged by itself, so that a bad reference gets every message that
//! applies; the texts are part of the interface.

use kube::core::Rule;
use schemars::{Schema, SchemaGenerator, json_schema};

/// Longest reference, in characters.
const MAX_LENGTH: u32 = 1000;

/// Schema of a reference by tag or by digest.
pub(crate) fn by_tag_or_digest(_: &mut SchemaGenerator) -> Schema {
    let end = Rule::new(r#"self.find('(@.*:)') != "" || self.find(':.*$') != """#)
        .message("must end with a digest or a tag");
    let mut rules = vec![domain(), name(), end];
    rules.extend(tag());
    rules.extend(digest());
    schema(&rules)
}

/// Schema of a reference by digest.
pub(crate) fn by_digest(_: &mut SchemaGenerator) -> Schema {
    let end = Rule::new(r#"self.find('(@.*:)') != """#).message("must end with a digest");
    let mut rules = vec![domain(), name(), end];
    rules.extend(digest());
    schema(&rules)
}

fn schema(rules: &[Rule]) -> Schema {
    json_schema!({ "type": "string", "maxLength": MAX_LENGTH, "x-kubernetes-validations": rules })
}

fn domain() -> Rule {
    Rule::new(concat!(
        r"self.matches('^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])",
        r"((\\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(:[0-9]+)?\\b')",
    ))
    .message(
        "must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) \
         separated by the \".\" character.",
    )
}

fn name() -> Rule {
    Rule::new(concat!(
        r"self.find('(\\/[a-z0-9]+((([._]|__|[-]*)[a-z0-9]+)+)?",
        r#"((\\/[a-z0-9]+((([._]|__|[-]*)[a-z0-9]+)+)?)+)?)') != """#,
    ))
    .message(
        "a valid name is required. valid names must contain lowercase alphanumeric characters separated only by \
         the \".\", \"_\", \"__\", \"-\" characters.",
    )
}

fn tag() -> [Rule; 2] {
    let guarded = |test: &str| {
        Rule::new(format!(
            r#"self.find('(@.*:)') == "" ? (self.find(':.*$') != "" ? self.find(':.*$').{test} : true) : true"#
        ))
    };
    [
        guarded("substring(1).size() <= 127")
            .message("tag is invalid. the tag must not be more than 127 characters"),
        guarded(r"matches(':[\\w][\\w.-]*$')").message(
            "tag is invalid. valid tags must begin with a word character (alphanumeric + \"_\") followed by word \
             characters or \".\", and \"-\" characters",
        ),
    ]
}

fn digest() -> [Rule; 3] {
    let guarded = |test: &str| Rule::new(format!(r#"self.find('(@.*:)') != "" ? self.find({test} : true"#));
    [
        guarded(r"'(@.*:)').matches('(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*[:])')").message(
            "digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha \
             character followed by alphanumeric characters and may contain the \"-\", \"_\", \"+\", and \".\" \
             characters.",
        ),
        guarded("':.*$').substring(1).size() >= 32")
            .message("digest is not valid. the encoded string must be at least 32 characters"),
        guarded("':.*$').matches(':[0-9A-Fa-f]*$')")
            .message("digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)"),
    ]
}
