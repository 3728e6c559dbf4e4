//! `CatalogsDegraded`: catalogs that a resolution left out, or read from their former content. The condition is
//! additive to upstream's and present only while it is true.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use olm_api::condition::{Status, reasons::Extension as Reason, types::Extension as Type};
use olm_text::head;
use olm_text::name::CatalogName;

use crate::condition::{self, NewCondition};

pub(crate) const TYPE: &str = Type::CatalogsDegraded.as_str();
/// Reason while the former content of a catalog is in use.
pub(crate) const FORMER_CONTENT: &str = Reason::FormerContent.as_str();
/// Reason while catalogs are only left out.
const LEFT_OUT: &str = Reason::LeftOut.as_str();
/// Maximum number of catalogs that a message names.
const MAX_NAMED: usize = 8;
/// Maximum length of a cause in a message, in bytes: causes hold foreign text.
const MAX_CAUSE: usize = 512;

/// Selected catalogs whose present content a resolution could not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadCatalogs {
    /// Catalogs whose former content is in use.
    pub former: Vec<FormerContent>,
    /// Unreadable catalogs that could not have changed the choice, each with its cause.
    pub left_out: Vec<(CatalogName, String)>,
}

/// Catalog whose former content is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerContent {
    /// Name of the catalog.
    pub catalog: CatalogName,
    /// Time of the first failed read of the present content.
    pub since: Time,
    /// Error of the last read.
    pub cause: String,
}

impl UnreadCatalogs {
    fn message(&self) -> String {
        let former = self.former.iter().map(|former| {
            format!(
                "The present content of catalog \"{}\" cannot be read since {}: {}. Its former content is used until a \
                 read succeeds; reads are retried.",
                former.catalog,
                seconds(&former.since),
                shorten(&former.cause)
            )
        });
        let left_out = self.left_out.iter().map(|(catalog, cause)| {
            format!(
                "Catalog \"{catalog}\" is left out: {}. It could not have changed the choice.",
                shorten(cause)
            )
        });
        let mut sentences: Vec<String> = former.chain(left_out).collect();
        let more = sentences.len().saturating_sub(MAX_NAMED);
        sentences.truncate(MAX_NAMED);
        if more > 0 {
            sentences.push(format!("{more} more catalogs are not read."));
        }
        sentences.join(" ")
    }
}

/// Formats the time without fractions of a second.
fn seconds(time: &Time) -> String {
    time.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn shorten(text: &str) -> &str {
    head(text, MAX_CAUSE).trim_end_matches('.')
}

/// Sets or removes the condition. With `None` the state of the catalogs is unknown, and an existing condition keeps
/// its text.
pub fn put(conditions: &mut Vec<Condition>, catalogs: Option<&UnreadCatalogs>, generation: i64, now: &Time) {
    let Some(catalogs) = catalogs else {
        return conditions
            .iter_mut()
            .filter(|condition| condition.type_ == TYPE)
            .for_each(|condition| condition.observed_generation = Some(generation));
    };
    let reason = match (catalogs.former.as_slice(), catalogs.left_out.as_slice()) {
        ([], []) => return conditions.retain(|condition| condition.type_ != TYPE),
        ([], _) => LEFT_OUT,
        _ => FORMER_CONTENT,
    };
    let new = NewCondition {
        type_: TYPE.to_owned(),
        status: Status::True,
        reason: reason.to_owned(),
        message: catalogs.message(),
        observed_generation: generation,
    };
    condition::set(conditions, new, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_catalogs_are_reported_while_unread() {
        let now = Time("2026-01-02T03:04:05.678Z".parse().unwrap());
        let mut conditions = Vec::new();
        let mut catalogs = UnreadCatalogs {
            former: Vec::new(),
            left_out: vec![("low".into(), "catalog \"low\" is not being served".to_owned())],
        };
        put(&mut conditions, Some(&catalogs), 1, &now);
        assert_eq!(
            (conditions[0].reason.as_str(), conditions[0].message.as_str()),
            (
                "LeftOut",
                "Catalog \"low\" is left out: catalog \"low\" is not being served. It could not have changed the choice."
            )
        );
        catalogs.former.push(FormerContent {
            catalog: "high".into(),
            since: now.clone(),
            cause: "x".repeat(2000),
        });
        catalogs.left_out.clear();
        put(&mut conditions, Some(&catalogs), 1, &now);
        assert_eq!(conditions[0].reason, "FormerContent");
        let message = &conditions[0].message;
        assert!(
            message.starts_with(
                "The present content of catalog \"high\" cannot be read since 2026-01-02T03:04:05Z: xxx"
            ),
            "{message}"
        );
        assert!(message.len() < 800, "{message}");
        put(&mut conditions, None, 2, &now);
        assert_eq!(
            conditions[0].observed_generation,
            Some(2),
            "the state of the catalogs is unknown"
        );
        catalogs.former = vec![catalogs.former[0].clone(); 100];
        put(&mut conditions, Some(&catalogs), 2, &now);
        assert!(conditions[0].message.ends_with("92 more catalogs are not read."));
        assert!(conditions[0].message.len() < 32_768);
        put(&mut conditions, Some(&UnreadCatalogs::default()), 2, &now);
        assert!(conditions.is_empty());
    }
}
