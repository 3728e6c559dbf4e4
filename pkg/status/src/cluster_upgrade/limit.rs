//! The property `olm.maxOpenShiftVersion` of a bundle: the last OpenShift minor that the bundle supports.
//!
//! The parser reads the text of the property, never a number: `4.20` is not `4.2`. Messages are upstream's.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::Minor;

const TYPE: &str = "olm.maxOpenShiftVersion";

/// Reason why the limit of a bundle is invalid, in the words of cluster-olm-operator.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LimitError {
    /// The properties are no JSON list of properties.
    #[error("could not convert olm.properties: failed to unmarshal properties annotation: {0}")]
    Properties(String),
    /// The list has more than one such property.
    #[error("more than one olm.maxOpenShiftVersion found in bundle")]
    Duplicate,
    /// The value is no `<major>.<minor>`.
    #[error("error converting to semver for version {raw}: {error}")]
    Version {
        /// Raw value.
        raw: String,
        /// Parse error.
        error: String,
    },
}

#[derive(Deserialize)]
struct Property<'a> {
    #[serde(rename = "type", default)]
    type_: String,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

/// Returns the limit in the JSON list `properties`, if any.
///
/// # Errors
/// The limit is invalid.
pub fn limit(properties: &str) -> Result<Option<Minor>, LimitError> {
    let properties: Vec<Property<'_>> =
        serde_json::from_str(properties).map_err(|error| LimitError::Properties(error.to_string()))?;
    let mut limits = properties.iter().filter(|property| property.type_ == TYPE);
    let Some(property) = limits.next() else {
        return Ok(None);
    };
    if limits.next().is_some() {
        return Err(LimitError::Duplicate);
    }
    let raw = property.value.map_or("null", RawValue::get).trim();
    parse(raw).map(Some).map_err(|error| LimitError::Version {
        raw: raw.to_owned(),
        error,
    })
}

/// Returns the limit in a property's value from a catalog; `None` if it is invalid.
#[must_use]
pub fn limit_of_value(raw: &str) -> Option<Minor> {
    parse(raw.trim()).ok()
}

fn parse(raw: &str) -> Result<Minor, String> {
    let go_type = match raw.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(raw).map_err(|error| error.to_string())?;
            return parse_text(&text);
        }
        Some(b'0'..=b'9' | b'-') => return parse_number(raw),
        Some(b't' | b'f') => "bool",
        Some(b'{') => "map[string]interface {}",
        Some(b'[') => "[]interface {}",
        _ => "<nil>",
    };
    Err(format!(
        "invalid type {go_type} for olm.maxOpenshiftVersion: {raw}"
    ))
}

fn parse_number(raw: &str) -> Result<Minor, String> {
    let is_valid = |part: &str, allow_zero: bool| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && (!part.starts_with('0') || (allow_zero && part == "0"))
    };
    raw.split_once('.')
        .filter(|(major, minor)| is_valid(major, false) && is_valid(minor, true))
        .and_then(|(major, minor)| {
            Some(Minor {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            })
        })
        .ok_or_else(|| format!("invalid semver format \"{raw}\": expected <major>.<minor>"))
}

fn parse_text(text: &str) -> Result<Minor, String> {
    let text = text.trim();
    let Some((major, minor)) = text.split_once('.') else {
        return Err("invalid version format".to_owned());
    };
    if text.starts_with('v') || minor.contains('.') {
        return Err("invalid version format".to_owned());
    }
    if minor.contains(['+', '-']) {
        return Err("Short version cannot contain PreRelease/Build meta data".to_owned());
    }
    let number = |part: &str, which: &str| {
        if !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("Invalid character(s) found in {which} number \"{part}\""));
        }
        part.parse()
            .map_err(|_| format!("strconv.ParseUint: parsing \"{part}\": invalid syntax"))
    };
    Ok(Minor {
        major: number(major, "major")?,
        minor: number(minor, "minor")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Result<Option<String>, String> {
        let list = format!(
            r#"[{{"type":"olm.package","value":{{}}}},{{"type":"olm.maxOpenShiftVersion","value":{value}}}]"#
        );
        limit(&list)
            .map(|found| found.map(|minor| minor.to_string()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_and_texts_keep_their_digits() {
        for (value, wanted) in [
            ("4.20", "4.20"),
            ("\"4.20\"", "4.20"),
            ("\" 04.08 \"", "4.8"),
            ("5.0", "5.0"),
        ] {
            assert_eq!(read(value), Ok(Some(wanted.to_owned())), "{value}");
        }
        assert_eq!(limit("[]"), Ok(None));
    }

    #[test]
    fn invalid_limits_are_errors() {
        let wrapped =
            |raw: &str, why: &str| Err(format!("error converting to semver for version {raw}: {why}"));
        for (value, why) in [
            ("4", "invalid semver format \"4\": expected <major>.<minor>"),
            (
                "4.1e3",
                "invalid semver format \"4.1e3\": expected <major>.<minor>",
            ),
            ("04.1", ""),
            ("true", "invalid type bool for olm.maxOpenshiftVersion: true"),
            (
                "[4]",
                "invalid type []interface {} for olm.maxOpenshiftVersion: [4]",
            ),
            ("null", "invalid type <nil> for olm.maxOpenshiftVersion: null"),
            ("\"4\"", "invalid version format"),
            ("\"v4.18\"", "invalid version format"),
            ("\"4.18.1\"", "invalid version format"),
            ("\"4.x\"", "Invalid character(s) found in minor number \"x\""),
            ("\"4.\"", "strconv.ParseUint: parsing \"\": invalid syntax"),
            (
                "\"4.18-rc\"",
                "Short version cannot contain PreRelease/Build meta data",
            ),
        ] {
            if why.is_empty() {
                assert!(read(value).is_err(), "not JSON: {value}");
            } else {
                assert_eq!(read(value), wrapped(value, why));
            }
        }
        let twice = r#"[{"type":"olm.maxOpenShiftVersion","value":"4.1"},{"type":"olm.maxOpenShiftVersion","value":"4.1"}]"#;
        assert_eq!(limit(twice), Err(LimitError::Duplicate));
        assert!(matches!(limit("no"), Err(LimitError::Properties(_))));
    }

    #[test]
    fn numbers_and_objects_of_json_may_be_no_minor() {
        for (value, why) in [
            ("0.5", "invalid semver format \"0.5\": expected <major>.<minor>"),
            ("5.00", "invalid semver format \"5.00\": expected <major>.<minor>"),
            ("4.+5", "invalid semver format \"4.+5\": expected <major>.<minor>"),
            (
                "{}",
                "invalid type map[string]interface {} for olm.maxOpenshiftVersion: {}",
            ),
        ] {
            assert_eq!(parse(value), Err(why.to_owned()));
            assert_eq!(limit_of_value(value), None);
        }
        assert_eq!(
            limit_of_value(" 4.20 ").map(|minor| minor.to_string()),
            Some("4.20".to_owned())
        );
    }
}
