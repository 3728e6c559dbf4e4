//! The query of `/metas`.

use std::borrow::Cow;

use super::project::Projection;
use crate::storage::Filter;

/// Longest query that is looked at, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// What `/metas` is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Which objects.
    pub(super) filter: Filter,
    /// What of each, when not the whole.
    pub(super) projection: Option<Projection>,
}

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is malformed or has another parameter.
    Malformed,
    /// A path is malformed: a sentence that says how.
    Path(String),
}

/// Reads `schema`, `package`, `name`, `fields` and `exclude`: of the first three the first value wins, as
/// upstream; the others add up. An empty value is as good as none.
pub(super) fn read(query: Option<&str>) -> Result<Query, Fault> {
    let query = query.unwrap_or_default();
    if query.len() > MAX_BYTES {
        return Err(Fault::Malformed);
    }
    let (mut schema, mut package, mut name) = (None, None, None);
    let (mut fields, mut exclude) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).ok_or(Fault::Malformed)?;
        let slot = match decoded(key).ok_or(Fault::Malformed)?.as_ref() {
            "schema" => &mut schema,
            "package" => &mut package,
            "name" => &mut name,
            "fields" => {
                join(&mut fields, &value);
                continue;
            }
            "exclude" => {
                join(&mut exclude, &value);
                continue;
            }
            _ => return Err(Fault::Malformed),
        };
        slot.get_or_insert(value.into_owned());
    }
    let given = |value: Option<String>| value.filter(|value| !value.is_empty());
    Ok(Query {
        filter: Filter {
            schema: given(schema),
            package: given(package),
            name: given(name),
        },
        projection: Projection::new(fields.as_deref(), exclude.as_deref()).map_err(Fault::Path)?,
    })
}

fn join(list: &mut Option<String>, more: &str) {
    match list {
        None => *list = Some(more.to_owned()),
        Some(list) if list.is_empty() => more.clone_into(list),
        Some(_) if more.is_empty() => {}
        Some(list) => {
            list.push(',');
            list.push_str(more);
        }
    }
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
        for same in ["", "&&&", "schema&package=", "fields=&exclude"] {
            assert_eq!(read(Some(same)), Ok(Query::default()), "{same}");
        }
        assert_eq!(read(None), Ok(Query::default()));
        let both = read(Some("schema=%6Flm.package&schema=x&name=a+b"))
            .unwrap()
            .filter;
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
            assert_eq!(read(Some(bad)), Err(Fault::Malformed), "{bad}");
        }
    }

    #[test]
    fn paths_add_up() {
        let one = read(Some("fields=name,icon.mediatype")).unwrap();
        assert_eq!(read(Some("fields=icon%2Emediatype&fields=&fields=name")), Ok(one));
        assert!(matches!(read(Some("exclude=a..b")), Err(Fault::Path(_))));
    }
}
