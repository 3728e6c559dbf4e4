//! `resolve`: the bundle that would be installed; with `--semantics classic`, also OLM Classic's choice.

use serde_json::{Value, json};

use super::common::package;
use crate::classic::{self, Choice};
use crate::cli::{Policy, ResolveArgs, Semantics};
use crate::failure::Failure;
use crate::installed::found;
use crate::lifecycle;
use crate::report::Report;
use crate::resolve_report::{ResolveReport, request};
use crate::source::gates_of;
use crate::style::{Paint, Style};
use crate::table::Table;

/// Resolves; positive if there is a bundle by the requested semantics.
pub(crate) async fn run(args: ResolveArgs, style: Style) -> Result<Report, Failure> {
    if args.semantics == Semantics::Classic {
        suits_classic(&args)?;
    }
    let inputs = package(&args.source, &args.package).await?;
    let gates = gates_of(&args.source).await.with(&args.request_args);
    let request = request(&args.package, &args.request_args, &inputs, &gates)?;
    let mut report = ResolveReport::new(request, &inputs, None);
    report.assumption = gates.assumption_on_releases(&inputs);
    report.add_support(&inputs, lifecycle::today());
    report.check_dependencies(&args.source, None).await?;
    let mut value = report.value();
    if args.semantics == Semantics::V1 {
        let text = format!("{}{}", report.text(style), report.suggestion_text(None, style));
        let positive = report.is_positive();
        return Ok(Report::new(value, text).positive(positive));
    }
    let mut catalogs = found(&inputs);
    let (Some((catalog, content)), None) = (catalogs.next(), catalogs.next()) else {
        return Err(Failure::Usage(
            "OLM Classic uses one catalog: name it with --catalog".to_owned(),
        ));
    };
    let wanted = args.request_args.channels.first().map(String::as_str);
    let channel = classic::channel(content, wanted).map_err(Failure::NegativeAnswer)?;
    let installed = report.request.installed.as_ref();
    let choice = classic::choose(channel, installed.map(|it| (it.name.as_str(), &it.version)));
    let version = choice
        .bundle
        .as_deref()
        .map(|bundle| content.version_text(bundle));
    let same = same_choice(&report, &choice);
    if let Value::Object(map) = &mut value {
        map.insert("classic".to_owned(), json!(choice));
        map.insert("classicVersion".to_owned(), json!(version));
        map.insert("same".to_owned(), json!(same));
    }
    let mut table = Table::new(&["SEMANTICS", "VERSION", "BUNDLE", "WHY"]);
    let channel_name = format!("channel {}", choice.channel);
    table.row(
        if choice.bundle.is_some() {
            Paint::Plain
        } else {
            Paint::Bad
        },
        [
            "classic",
            version.as_deref().unwrap_or("none"),
            choice.bundle.as_deref().unwrap_or_default(),
            &format!("{channel_name}: {}", choice.reason),
        ],
    );
    match &report.result {
        Ok(ours) => table.row(
            Paint::Plain,
            [
                "v1",
                &ours.version.to_string(),
                &ours.bundle,
                v1_reason(&report, ours.bundle.as_str()),
            ],
        ),
        Err(error) => table.row(Paint::Bad, ["v1", "none", "", &error.to_string()]),
    }
    let text = format!(
        "{}\n{}",
        table.text(style, ""),
        if same {
            "Both choose the same bundle.\n".to_owned()
        } else {
            format!("They differ in catalog {catalog}.\n")
        }
    );
    let positive = choice.bundle.is_some();
    Ok(Report::new(value, text).positive(positive))
}

fn suits_classic(args: &ResolveArgs) -> Result<(), Failure> {
    let wrong = if args.request_args.range.is_some() {
        "OLM Classic has no version ranges: omit --range"
    } else if args.request_args.policy == Policy::SelfCertified {
        "OLM Classic always follows the catalog: omit --policy SelfCertified"
    } else if args.request_args.channels.len() > 1 {
        "OLM Classic follows one channel: give --channel once"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(wrong.to_owned()))
}

/// Returns true if both choose the same bundle. If Classic has no successor, it stays, which counts as the same.
fn same_choice(report: &ResolveReport, choice: &Choice) -> bool {
    let installed = report.request.installed.as_ref().map(|it| it.name.as_str());
    let ours = report.result.as_ref().ok().map(|found| found.bundle.as_str());
    choice.bundle.as_deref().or(installed) == ours.or(installed)
}

fn v1_reason(report: &ResolveReport, bundle: &str) -> &'static str {
    match &report.request.installed {
        None => "the highest version",
        Some(installed) if installed.name == bundle => "it stays: no edge leads to a higher version",
        Some(_) => "the highest version that an edge leads to",
    }
}
