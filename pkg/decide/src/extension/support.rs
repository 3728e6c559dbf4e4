//! Support of the installed version, from the answers of the catalogs that were asked for its package anyway.

use std::cmp::Reverse;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use olm_fbc::PackageContent;
use olm_resolve::{CatalogInput, CatalogLookup, SupportAnswer};

use super::catalogs::{CatalogAnswers, CatalogLookups};
use super::history::History;

/// Returns the support of the installed version at `now`; `None` if the catalog that counts was not read.
///
/// The catalog of the installed bundle counts. If it is not selected, or does not have the package any more, the first
/// other catalog with lifecycles of the package counts, by priority and then by name.
pub fn answer(history: &History, lookups: &CatalogLookups, now: Timestamp) -> Option<SupportAnswer> {
    let Some(installed) = &history.installed else {
        return Some(SupportAnswer::NoData);
    };
    let CatalogLookups::Answered(CatalogAnswers { answers, .. }) = lookups else {
        return None;
    };
    let Ok(version) = installed.bundle.version.parsed() else {
        return Some(SupportAnswer::NoData);
    };
    let today = TimeZone::UTC.to_datetime(now).date();
    let of = |content: &PackageContent| SupportAnswer::of(&content.lifecycles, &version.version, today);
    let own = answers
        .iter()
        .find(|answer| Some(&answer.name) == installed.bundle.catalog.as_ref());
    match own.map(|own| &own.lookup) {
        Some(CatalogLookup::Found(content)) => return Some(of(content)),
        Some(CatalogLookup::NotServing | CatalogLookup::Failed(_)) => return None,
        Some(CatalogLookup::NoSuchPackage) | None => {}
    }
    let mut others: Vec<&CatalogInput> = answers.iter().collect();
    others.sort_by_key(|answer| (Reverse(answer.priority), &answer.name));
    for other in others {
        match &other.lookup {
            CatalogLookup::Found(content) if !content.lifecycles.is_empty() => return Some(of(content)),
            CatalogLookup::NotServing | CatalogLookup::Failed(_) => return None,
            CatalogLookup::Found(_) | CatalogLookup::NoSuchPackage => {}
        }
    }
    Some(SupportAnswer::NoData)
}

/// Returns the Unix time at which support ends: midnight of UTC after its last day.
pub fn end(answer: &SupportAnswer) -> Option<i64> {
    let last_day = answer.known()?.last_day?;
    Some(midnight(last_day.tomorrow().ok()?)?.as_second())
}

/// Returns the time at which the answer changes next.
pub fn next_change(answer: &SupportAnswer) -> Option<Timestamp> {
    midnight(answer.known()?.next_change?)
}

fn midnight(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests;
