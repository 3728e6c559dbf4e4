//! Reads one object. Every list is bounded before anything of it is kept.

use std::str::FromStr as _;

use olm_text::cut;
use olm_version::MinorVersion;
use serde_json::Value;

use super::{
    Date, Lifecycle, LifecycleFault, MAX_BYTES, MAX_NAME, MAX_PHASES, MAX_PLATFORM_VERSIONS, MAX_PLATFORMS,
    Phase, Platform, date,
};

type Read<T> = Result<T, LifecycleFault>;

/// Returns the entries of `versions`.
pub(super) fn versions(blob: &[u8]) -> Read<Vec<Value>> {
    if blob.len() > MAX_BYTES {
        return Err(LifecycleFault::TooLarge { bytes: blob.len() });
    }
    let object: Value = serde_json::from_slice(blob).map_err(|error| LifecycleFault::Malformed {
        reason: cut(&error.to_string(), MAX_NAME).into_owned(),
    })?;
    let Value::Object(mut object) = object else {
        return Err(shape("the object", "map"));
    };
    match object.remove("versions") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(shape("versions", "list")),
    }
}

/// Reads an entry of `versions`: the version, its lifecycle, and the defect of its platforms if they are left out. An error
/// has the name of the entry.
pub(super) fn version(
    entry: &Value,
) -> Result<(MinorVersion, Lifecycle, Read<()>), (String, LifecycleFault)> {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    let read = || {
        let version = minor(name)?;
        Ok((version, phases(entry)?))
    };
    let (version, phases) = read().map_err(|fault| (shortened(name), fault))?;
    let (platforms, defect) = match platforms(entry) {
        Ok(platforms) => (platforms, Ok(())),
        Err(fault) => (Vec::new(), Err(fault)),
    };
    Ok((version, Lifecycle { phases, platforms }, defect))
}

fn phases(entry: &Value) -> Read<Vec<Phase>> {
    let mut phases = Vec::new();
    for phase in list(entry, "phases", "phases", MAX_PHASES)? {
        if !phase.is_object() {
            return Err(shape("a phase", "map"));
        }
        let name = name_of(phase)?;
        let start_date = day(phase, "startDate", &name)?;
        let end_date = day(phase, "endDate", &name)?;
        match (start_date, end_date) {
            // Nothing is said about any day.
            (None, None) => {}
            (Some(start), Some(end)) if end < start => return Err(LifecycleFault::Order { phase: name }),
            _ => phases.push(Phase {
                name,
                start_date,
                end_date,
            }),
        }
    }
    // An open beginning is the earliest day, an open end the latest.
    let order = |phase: &Phase| {
        (
            phase.start_date,
            phase.end_date.unwrap_or(Date::MAX),
            phase.end_date.is_none(),
        )
    };
    phases.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name)));
    Ok(phases)
}

fn platforms(entry: &Value) -> Read<Vec<Platform>> {
    let listed = list(entry, "platformCompatibility", "platforms", MAX_PLATFORMS)?;
    let platform = |platform: &Value| {
        if !platform.is_object() {
            return Err(shape("a platform", "map"));
        }
        let versions = list(
            platform,
            "versions",
            "versions of a platform",
            MAX_PLATFORM_VERSIONS,
        )?;
        let version = |version: &Value| {
            minor(
                version
                    .as_str()
                    .ok_or_else(|| shape("a platform's version", "text"))?,
            )
        };
        Ok(Platform {
            name: name_of(platform)?,
            versions: versions.iter().map(version).collect::<Read<_>>()?,
        })
    };
    listed.iter().map(platform).collect()
}

fn name_of(value: &Value) -> Read<String> {
    match value.get("name") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(name)) => Ok(shortened(name)),
        Some(_) => Err(shape("a name", "text")),
    }
}

fn day(phase: &Value, field: &'static str, name: &str) -> Read<Option<Date>> {
    match phase.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => date::parse(text).map(Some).ok_or_else(|| LifecycleFault::Date {
            field,
            text: shortened(text),
            phase: name.to_owned(),
        }),
        Some(_) => Err(shape(field, "text")),
    }
}

/// Returns a list; `null` and an absent one are empty.
fn list<'a>(of: &'a Value, field: &'static str, what: &'static str, limit: usize) -> Read<&'a [Value]> {
    match of.get(field) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) if list.len() > limit => Err(LifecycleFault::TooMany { what, limit }),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(shape(field, "list")),
    }
}

fn minor(text: &str) -> Read<MinorVersion> {
    MinorVersion::from_str(text).map_err(|_| LifecycleFault::Minor {
        text: shortened(text),
    })
}

fn shortened(text: &str) -> String {
    cut(text, MAX_NAME).into_owned()
}

fn shape(field: &'static str, expected: &'static str) -> LifecycleFault {
    LifecycleFault::Shape { field, expected }
}
