//! `range`: which versions a range admits, and why not the others.

use olm_version::{SkipRange, Version, VersionRange, VersionRelease, parse_version};
use serde::Serialize;

use crate::cli::RangeArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::spec_range;
use crate::style::{Paint, Style};
use crate::table::Table;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict<'a> {
    version: &'a str,
    matches: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Tests every version; positive when all are admitted.
pub(crate) fn run(args: &RangeArgs, style: Style) -> Result<Report, Failure> {
    let verdicts: Vec<Verdict<'_>> = if args.skip_range {
        let range: SkipRange = args
            .range
            .parse()
            .map_err(|error| Failure::Usage(format!("range {:?} is malformed: {error}", args.range)))?;
        args.versions
            .iter()
            .map(|version| by_skip_range(&range, version))
            .collect()
    } else {
        let range = spec_range::read(&args.range).map_err(Failure::Usage)?;
        args.versions
            .iter()
            .map(|version| by_range(&range, version))
            .collect()
    };
    let mut table = Table::new(&["VERSION", "MATCHES", "WHY NOT"]);
    for verdict in &verdicts {
        let (paint, answer) = if verdict.matches {
            (Paint::Good, "yes")
        } else {
            (Paint::Bad, "no")
        };
        table.row(
            paint,
            [
                verdict.version,
                answer,
                verdict.reason.as_deref().unwrap_or_default(),
            ],
        );
    }
    let positive = verdicts.iter().all(|verdict| verdict.matches);
    let value = serde_json::json!({"range": args.range, "versions": verdicts});
    Ok(Report::new(value, table.text(style, "")).positive(positive))
}

fn by_skip_range<'a>(range: &SkipRange, text: &'a str) -> Verdict<'a> {
    let reason = match parse_version(text) {
        Err(error) => Some(format!("no semantic version: {error}")),
        Ok(version) if range.matches(&version) => None,
        Ok(_) => Some("outside of the range".to_owned()),
    };
    Verdict {
        version: text,
        matches: reason.is_none(),
        reason,
    }
}

fn by_range<'a>(range: &VersionRange, text: &'a str) -> Verdict<'a> {
    let reason = match VersionRelease::parse_legacy(text) {
        Err(error) => Some(format!("no semantic version: {error}")),
        Ok(version) if range.matches(&version) => None,
        Ok(version) => Some(why_not(range, &version)),
    };
    Verdict {
        version: text,
        matches: reason.is_none(),
        reason,
    }
}

/// The parts of the range that do not admit the version. Each part is tested by itself, so that what is said
/// of it is what the range's own reader says.
fn why_not(range: &VersionRange, version: &VersionRelease) -> String {
    if !version.version.pre.is_empty() && range.matches(&without_pre(version)) {
        return "a pre-release is only in a range that names one, such as >=1.0.0-0".to_owned();
    }
    let refuses = |part: &&str| {
        part.parse::<VersionRange>()
            .is_ok_and(|single| !single.matches(version))
    };
    let failed: Vec<String> = range
        .as_str()
        .split("||")
        .filter_map(|alternative| {
            let part = alternative.split(',').map(str::trim).find(refuses)?;
            Some(format!("not {part}"))
        })
        .collect();
    if failed.is_empty() {
        "outside of the range".to_owned()
    } else {
        failed.join(", ")
    }
}

/// The version without what makes it a pre-release.
fn without_pre(version: &VersionRelease) -> VersionRelease {
    let version = &version.version;
    VersionRelease {
        version: Version::new(version.major, version.minor, version.patch),
        release: None,
    }
}
