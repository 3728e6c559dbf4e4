//! The query of `/metas`.

use std::borrow::Cow;

use crate::storage::Filter;

/// Longest query that is looked at, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// Reads `schema`, `package` and `name`: first value wins, an empty one is no filter. `None` when
/// there is another parameter or the query is malformed.
pub(super) fn filter(query: Option<&str>) -> Option<Filter> {
    let query = query.unwrap_or_default();
    if query.len() > MAX_BYTES {
        return None;
    }
    let (mut schema, mut package, mut name) = (None, None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let slot = match decoded(key)?.as_ref() {
            "schema" => &mut schema,
            "package" => &mut package,
            "name" => &mut name,
            _ => return None,
        };
        let value = decoded(value)?.into_owned();
        slot.get_or_insert(value);
    }
    let given = |value: Option<String>| value.filter(|value| !value.is_empty());
    Some(Filter {
        schema: given(schema),
        package: given(package),
        name: given(name),
    })
}

/// `%xx` and `+` undone; `None` for what Go refuses: a bare `;`, a broken escape. Text that is not
/// UTF-8 is refused too: no blob is filed under it.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+', ';']) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b';' => return None,
            b'+' => b' ',
            b'%' => {
                let (high, low) = (hex(rest.next()?)?, hex(rest.next()?)?);
                high * 16 + low
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_reading() {
        assert_eq!(filter(None), Some(Filter::default()));
        assert_eq!(filter(Some("&&&")), Some(Filter::default()));
        assert_eq!(filter(Some("schema&package=")), Some(Filter::default()));
        let both = filter(Some("schema=%6Flm.package&schema=x&name=a+b")).unwrap();
        assert_eq!(
            (both.schema.as_deref(), both.name.as_deref()),
            (Some("olm.package"), Some("a b"))
        );
        for bad in [
            "foo=bar",
            "Schema=a",
            "schema=%zz",
            "schema=a;package=b",
            "schema=%",
            "schema=%ff",
        ] {
            assert_eq!(filter(Some(bad)), None, "{bad}");
        }
    }
}
