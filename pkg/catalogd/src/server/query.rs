//! Query parameters of `/metas`.

use std::borrow::Cow;

use super::project::Projection;
use crate::storage::Filter;

/// Maximum size of a query, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// Parsed query of `/metas`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Filter of objects.
    pub(super) filter: Filter,
    /// Projection of each object; whole objects if `None`.
    pub(super) projection: Option<Projection>,
}

/// Reason to reject a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueryError {
    /// The query is malformed or has an unknown parameter.
    Malformed,
    /// A path is malformed; the text is a sentence for the client.
    Path(String),
}

/// Parses `schema`, `package`, `name`, `fields` and `exclude`. The first value of the first three wins, like upstream;
/// values of the others are joined. An empty value counts as absent.
pub(super) fn parse(query: Option<&str>) -> Result<Query, QueryError> {
    let query = query.unwrap_or_default();
    if query.len() > MAX_BYTES {
        return Err(QueryError::Malformed);
    }
    let (mut schema, mut package, mut name) = (None, None, None);
    let (mut fields, mut exclude) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value).ok_or(QueryError::Malformed)?;
        let slot = match decode(key).ok_or(QueryError::Malformed)?.as_ref() {
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
            _ => return Err(QueryError::Malformed),
        };
        slot.get_or_insert(value.into_owned());
    }
    let non_empty = |value: Option<String>| value.filter(|value| !value.is_empty());
    Ok(Query {
        filter: Filter {
            schema: non_empty(schema),
            package: non_empty(package),
            name: non_empty(name),
        },
        projection: Projection::new(fields.as_deref(), exclude.as_deref()).map_err(QueryError::Path)?,
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

/// Decodes `%xx` and `+`. Returns `None` for queries that Go rejects (a bare `;`, a broken escape) and for text that is
/// not UTF-8, which no blob has.
fn decode(text: &str) -> Option<Cow<'_, str>> {
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
            assert_eq!(parse(Some(same)), Ok(Query::default()), "{same}");
        }
        assert_eq!(parse(None), Ok(Query::default()));
        let both = parse(Some("schema=%6Flm.package&schema=x&name=a+b"))
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
            assert_eq!(parse(Some(bad)), Err(QueryError::Malformed), "{bad}");
        }
    }

    #[test]
    fn paths_add_up() {
        let one = parse(Some("fields=name,icon.mediatype")).unwrap();
        assert_eq!(
            parse(Some("fields=icon%2Emediatype&fields=&fields=name")),
            Ok(one)
        );
        assert!(matches!(parse(Some("exclude=a..b")), Err(QueryError::Path(_))));
    }
}
