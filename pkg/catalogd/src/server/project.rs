//! Parameters `fields` and `exclude` of `/metas`: projections of objects.
//!
//! A path is keys joined by `.`; it traverses every element of a list. Selected values are copied verbatim, so a
//! response stays in the catalog's canonical form.

use std::{collections::BTreeMap, fmt, ops::ControlFlow};

use serde::{
    Serialize,
    de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Maximum number of paths per parameter.
const MAX_PATHS: usize = 64;
/// Maximum number of keys per path.
const MAX_KEYS: usize = 16;

/// Paths as a tree, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct PathTree {
    /// A path ends here and selects everything below.
    all: bool,
    below: BTreeMap<String, PathTree>,
}

/// Parts of each object that a response contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Projection {
    /// Paths to include; all if `None`.
    fields: Option<PathTree>,
    /// Paths to exclude.
    exclude: Option<PathTree>,
}

impl Projection {
    /// Parses the two parameters; an empty one counts as absent. Returns `None` if objects are requested whole.
    ///
    /// The error is a sentence for the client.
    pub(super) fn new(fields: Option<&str>, exclude: Option<&str>) -> Result<Option<Self>, String> {
        let read = |name: &str, text: Option<&str>| {
            text.filter(|text| !text.is_empty())
                .map(|text| parse_paths(text).map_err(|fault| format!("invalid {name}: {fault}")))
                .transpose()
        };
        let (fields, exclude) = (read("fields", fields)?, read("exclude", exclude)?);
        Ok((fields.is_some() || exclude.is_some()).then_some(Self { fields, exclude }))
    }

    /// Appends the projection of one object, given as JSON without white space.
    pub(super) fn apply(&self, object: &[u8], out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let text = std::str::from_utf8(object).map_err(serde_json::Error::custom)?;
        write(text, self.fields.as_ref(), self.exclude.as_ref(), out)
    }
}

/// Parses `a.b,c`; a backslash escapes the next character.
fn parse_paths(text: &str) -> Result<PathTree, String> {
    let mut root = PathTree::default();
    let (mut path, mut key, mut count) = (Vec::new(), String::new(), 0);
    let mut rest = text.chars();
    loop {
        let char = rest.next();
        match char {
            Some('\\') => key.push(rest.next().ok_or("a path ends with a backslash")?),
            Some('.' | ',') | None => {
                if key.is_empty() {
                    return Err("a path has an empty key".to_owned());
                }
                path.push(std::mem::take(&mut key));
                if path.len() > MAX_KEYS {
                    return Err(format!("a path has more than {MAX_KEYS} keys"));
                }
                if char != Some('.') {
                    count += 1;
                    if count > MAX_PATHS {
                        return Err(format!("more than {MAX_PATHS} paths"));
                    }
                    root.add(std::mem::take(&mut path));
                }
            }
            Some(char) => key.push(char),
        }
        if char.is_none() {
            return Ok(root);
        }
    }
}

impl PathTree {
    fn add(&mut self, path: Vec<String>) {
        let mut at = self;
        for key in path {
            if at.all {
                return;
            }
            at = at.below.entry(key).or_default();
        }
        at.all = true;
        at.below.clear();
    }
}

/// Returns the remaining trees for a key's value, or `None` if the value is omitted.
fn child<'a>(
    key: &str,
    keep: Option<&'a PathTree>,
    drop: Option<&'a PathTree>,
) -> Option<(Option<&'a PathTree>, Option<&'a PathTree>)> {
    let drop = drop.and_then(|drop| drop.below.get(key));
    if drop.is_some_and(|drop| drop.all) {
        return None;
    }
    let keep = match keep {
        None => None,
        Some(keep) => Some(keep.below.get(key)?).filter(|keep| !keep.all),
    };
    Some((keep, drop))
}

/// Appends the parts of a value that `keep` (all if `None`) includes and `drop` does not exclude.
fn write(
    value: &str,
    keep: Option<&PathTree>,
    drop: Option<&PathTree>,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    if keep.is_none() && drop.is_none() {
        out.extend_from_slice(value.as_bytes());
        return Ok(());
    }
    let (open, close) = match value.as_bytes().first() {
        Some(b'{') => (b'{', b'}'),
        Some(b'[') => (b'[', b']'),
        _ => {
            out.extend_from_slice(value.as_bytes());
            return Ok(());
        }
    };
    out.push(open);
    let mut empty = true;
    for_each_value(value, |key, value| {
        let found = match key {
            Some(key) => child(key, keep, drop),
            None => Some((keep, drop)),
        };
        // Only objects and lists can have the remaining keys of a path.
        let Some((keep, drop)) = found.filter(|(keep, _)| keep.is_none() || value.starts_with(['{', '[']))
        else {
            return Ok(());
        };
        if !std::mem::replace(&mut empty, false) {
            out.push(b',');
        }
        if let Some(key) = key {
            out.extend_from_slice(key_text(key)?.as_bytes());
            out.push(b':');
        }
        write(value, keep, drop, out)
    })?;
    out.push(close);
    Ok(())
}

/// Serializes a key in the canonical form.
fn key_text(key: &str) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(key)?;
    Ok(text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// Calls `each` for the members of an object or the elements of a list (without keys).
pub(super) fn for_each_value(
    text: &str,
    mut each: impl FnMut(Option<&str>, &str) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let mut failed = None;
    let visitor = ForEachValue(|key: Option<&str>, value: &str| match each(key, value) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    let read = visitor.deserialize(&mut serde_json::Deserializer::from_str(text));
    failed.map_or(read, Err)
}

struct ForEachValue<F>(F);

impl<'de, F: FnMut(Option<&str>, &str) -> ControlFlow<()>> DeserializeSeed<'de> for ForEachValue<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Option<&str>, &str) -> ControlFlow<()>> Visitor<'de> for ForEachValue<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            if (self.0)(Some(&key), value.get()).is_break() {
                return Err(A::Error::custom("given up"));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<&RawValue>()? {
            if (self.0)(None, value.get()).is_break() {
                return Err(A::Error::custom("given up"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"a\u2028":1,"icon":{"base64data":"AA==","mediatype":"x"},"n":1e+21,"name":"é","olm.x":true,"properties":[{"type":"t","value":{"v":[1,2]}},5,{"type":"u"}]}"#;

    fn projected(fields: &str, exclude: &str) -> String {
        let projection = Projection::new(Some(fields), Some(exclude)).unwrap().unwrap();
        let mut out = Vec::new();
        projection.apply(OBJECT.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn paths_select() {
        for (fields, exclude, expected) in [
            ("name", "", r#"{"name":"é"}"#),
            ("name,n", "", r#"{"n":1e+21,"name":"é"}"#),
            ("nothing", "", "{}"),
            (
                "properties.type",
                "",
                r#"{"properties":[{"type":"t"},{"type":"u"}]}"#,
            ),
            (
                "properties.value.v,properties.type",
                "",
                r#"{"properties":[{"type":"t","value":{"v":[1,2]}},{"type":"u"}]}"#,
            ),
            // A longer path adds nothing to a shorter one, in either order.
            (
                "icon.mediatype,icon",
                "",
                r#"{"icon":{"base64data":"AA==","mediatype":"x"}}"#,
            ),
            (
                "icon,icon.mediatype",
                "",
                r#"{"icon":{"base64data":"AA==","mediatype":"x"}}"#,
            ),
            ("name.first", "", "{}"),
            ("olm\\.x", "", r#"{"olm.x":true}"#),
            ("a\u{2028}", "", r#"{"a\u2028":1}"#),
            ("icon", "icon.base64data", r#"{"icon":{"mediatype":"x"}}"#),
            (
                "",
                "icon,properties.value,n,name,olm\\.x",
                r#"{"a\u2028":1,"properties":[{"type":"t"},5,{"type":"u"}]}"#,
            ),
        ] {
            assert_eq!(projected(fields, exclude), expected, "{fields} without {exclude}");
        }
    }

    #[test]
    fn nothing_given_is_no_projection() {
        assert_eq!(Projection::new(None, Some("")), Ok(None));
    }

    #[test]
    fn malformed_paths_are_refused() {
        let (many, deep) = (vec!["a"; 65].join(","), vec!["a"; 17].join("."));
        for bad in [".", "a.", "a,,b", ",", "a\\", many.as_str(), deep.as_str()] {
            let error = Projection::new(Some(bad), None).unwrap_err();
            assert!(error.starts_with("invalid fields: "), "{error}");
        }
    }
}
