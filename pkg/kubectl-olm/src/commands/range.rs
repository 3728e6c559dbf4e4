//! `range`: versions that a range admits, and the reasons against the others.

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
struct VersionMatch<'a> {
    version: &'a str,
    matches: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Tests every version; positive if the range admits all.
pub(crate) fn run(args: &RangeArgs, style: Style) -> Result<Report, Failure> {
    let verdicts: Vec<VersionMatch<'_>> = if args.skip_range {
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

fn by_skip_range<'a>(range: &SkipRange, text: &'a str) -> VersionMatch<'a> {
    let reason = match parse_version(text) {
        Err(error) => Some(format!("not a semantic version: {error}")),
        Ok(version) if range.matches(&version) => None,
        Ok(_) => Some("outside of the range".to_owned()),
    };
    VersionMatch {
        version: text,
        matches: reason.is_none(),
        reason,
    }
}

fn by_range<'a>(range: &VersionRange, text: &'a str) -> VersionMatch<'a> {
    let reason = match VersionRelease::parse_legacy(text) {
        Err(error) => Some(format!("not a semantic version: {error}")),
        Ok(version) if range.matches(&version) => None,
        Ok(version) => Some(why_not(range, &version)),
    };
    VersionMatch {
        version: text,
        matches: reason.is_none(),
        reason,
    }
}

/// Returns the parts of the range that exclude the version. Each part is parsed and tested separately.
fn why_not(range: &VersionRange, version: &VersionRelease) -> String {
    if !version.version.pre.is_empty() && range.matches(&without_pre(version)) {
        return "a range contains pre-releases only if it names one, such as >=1.0.0-0".to_owned();
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

/// Returns the version without its pre-release.
fn without_pre(version: &VersionRelease) -> VersionRelease {
    let version = &version.version;
    VersionRelease {
        version: Version::new(version.major, version.minor, version.patch),
        release: None,
    }
}
