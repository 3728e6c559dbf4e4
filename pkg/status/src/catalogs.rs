//! `CatalogsDegraded`: catalogs that a resolution did without, or whose former content stood in. Additive to upstream's
//! conditions, and there only while it holds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_text::head;

use crate::condition::{self, NewCondition};

/// Type of the condition.
pub const TYPE: &str = "CatalogsDegraded";
/// Reason while former content stands in.
pub const FORMER_CONTENT: &str = "FormerContent";
/// Reason while catalogs are only left out.
const LEFT_OUT: &str = "LeftOut";
/// Most catalogs that a message names.
const NAMED: usize = 8;
/// Longest cause in a message, in bytes: causes hold foreign text.
const CAUSE: usize = 512;

/// Selected catalogs whose present content was not read, although a bundle was looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogs {
    /// Catalogs whose former content stands in.
    pub former: Vec<Former>,
    /// Catalogs that could not be read and could not have changed the choice, each with the cause.
    pub left_out: Vec<(String, String)>,
}

/// Catalog whose former content stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// Name of the catalog.
    pub catalog: String,
    /// Time of the first read of the present content that failed.
    pub since: Time,
    /// Failure of the last read.
    pub why: String,
}

impl Catalogs {
    fn message(&self) -> String {
        let former = self.former.iter().map(|former| {
            format!(
                "The present content of catalog \"{}\" cannot be read since {}: {}. Its former content stands in until a \
                 read succeeds; reads are tried again.",
                former.catalog,
                seconds(&former.since),
                cause(&former.why)
            )
        });
        let left_out = self.left_out.iter().map(|(catalog, why)| {
            format!(
                "Catalog \"{catalog}\" is left out: {}. It could not have changed the choice.",
                cause(why)
            )
        });
        let mut sentences: Vec<String> = former.chain(left_out).collect();
        let more = sentences.len().saturating_sub(NAMED);
        sentences.truncate(NAMED);
        if more > 0 {
            sentences.push(format!("So it is with {more} more."));
        }
        sentences.join(" ")
    }
}

/// The time without fractions of a second.
fn seconds(time: &Time) -> String {
    time.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn cause(text: &str) -> &str {
    head(text, CAUSE).trim_end_matches('.')
}

/// Tells `catalogs` in `conditions`; with `None` nothing is known, and what was told stays.
pub fn put(conditions: &mut Vec<Condition>, catalogs: Option<&Catalogs>, generation: i64, now: &Time) {
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
        status: "True".to_owned(),
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
    fn what_was_not_read_is_told_while_it_is_so() {
        let now = Time("2026-01-02T03:04:05.678Z".parse().unwrap());
        let mut conditions = Vec::new();
        let mut catalogs = Catalogs {
            former: Vec::new(),
            left_out: vec![("low".to_owned(), "catalog \"low\" is not being served".to_owned())],
        };
        put(&mut conditions, Some(&catalogs), 1, &now);
        assert_eq!(
            (conditions[0].reason.as_str(), conditions[0].message.as_str()),
            (
                "LeftOut",
                "Catalog \"low\" is left out: catalog \"low\" is not being served. It could not have changed the choice."
            )
        );
        catalogs.former.push(Former {
            catalog: "high".to_owned(),
            since: now.clone(),
            why: "x".repeat(2000),
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
        assert_eq!(conditions[0].observed_generation, Some(2), "nothing new is known");
        catalogs.former = vec![catalogs.former[0].clone(); 100];
        put(&mut conditions, Some(&catalogs), 2, &now);
        assert!(conditions[0].message.ends_with("So it is with 92 more."));
        assert!(conditions[0].message.len() < 32_768);
        put(&mut conditions, Some(&Catalogs::default()), 2, &now);
        assert!(conditions.is_empty());
    }
}
