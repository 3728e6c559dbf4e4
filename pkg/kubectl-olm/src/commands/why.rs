//! `why`: rules that excluded the other bundles, and the changes that would help.

use std::fmt::Write as _;

use olm_api::ClusterExtension;
use olm_api::condition::reasons::Extension as Reason;
use olm_resolve::CandidateVerdict;
use olm_version::RequestedRange;
use serde_json::{Value, json};

use super::common::package;
use crate::cli::WhyArgs;
use crate::failure::Failure;
use crate::installed::{found, matching};
use crate::kept::Kept;
use crate::lifecycle;
use crate::observed::CatalogChoice;
use crate::report::Report;
use crate::resolution_input::ResolutionInput;
use crate::resolve_report::{ResolveReport, request};
use crate::source::{Cluster, gates_of};
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Explains the resolution; positive if it chooses the wanted bundle, or any bundle if none is wanted.
pub(crate) async fn run(args: WhyArgs, style: Style) -> Result<Report, Failure> {
    let ResolutionInput {
        request,
        inputs,
        conditions,
        not_selected,
        assumption,
        extension,
    } = input(&args).await?;
    let want = args.want.as_deref();
    let contents = || found(&inputs).map(|(_, content)| content);
    let wanted = want.map(|want| matching(want, contents(), request.release_support));
    let range = request.range.clone();
    let mut report = ResolveReport::new(request, &inputs, want);
    let kept = match &extension {
        Some(extension) if report.result.is_err() => kept(&args, extension, range.as_ref()).await?,
        _ => None,
    };
    let stays = kept
        .as_ref()
        .is_some_and(|kept| want.is_none_or(|want| kept.is(want)));
    report.assumption = assumption;
    report.add_support(&inputs, lifecycle::today());
    report
        .check_dependencies(&args.source, args.extension.as_deref())
        .await?;
    let explanation = report.explanation();
    let mut value = report.value();
    if let Value::Object(map) = &mut value {
        map.insert("explanation".to_owned(), json!(explanation));
        if args.extension.is_some() {
            map.insert(
                "extension".to_owned(),
                json!({
                    "name": args.extension,
                    "conditions": conditions,
                    "catalogsNotSelected": not_selected,
                }),
            );
        }
        if let Some(kept) = &kept {
            map.insert("kept".to_owned(), json!(kept.title()));
            if stays {
                map.remove("error");
            }
        }
        if want.is_some() {
            map.insert("want".to_owned(), json!(want));
        }
    }
    let is_wanted = |candidate: &CandidateVerdict| {
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|(name, _)| *name == candidate.bundle))
    };
    let mut text = String::new();
    if let Some(name) = &args.extension {
        let _ = writeln!(text, "{:<11}{}", "Extension", clean(name));
    }
    text.push_str(&report.text(style));
    if let Some(kept) = &kept {
        let line = format!("{}, because no catalog is selected", kept.title());
        let _ = writeln!(text, "{:<11}{}", "Stays", clean(&line));
    }
    write_conditions(&mut text, &conditions);
    let catalogs = CatalogChoice::of(explanation, args.all || want.is_some(), is_wanted);
    write_catalogs(&mut text, &catalogs, style);
    if !not_selected.is_empty() {
        let _ = writeln!(
            text,
            "\nNot selected: catalogs {}",
            clean(&not_selected.join(", "))
        );
    }
    for note in &explanation.notes {
        let _ = writeln!(
            text,
            "\n{}",
            style.paint(Paint::Warn, &format!("{}.", clean(&note.to_string())))
        );
    }
    let hint = report.suggestion_text(want, style);
    if !hint.is_empty() {
        let _ = write!(text, "\n{hint}");
    }
    let chosen = report
        .result
        .as_ref()
        .ok()
        .map(|resolution| resolution.bundle.as_str());
    let resolved = report.is_positive()
        && chosen.is_some_and(|chosen| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted.iter().any(|(name, _)| name == chosen))
        });
    Ok(Report::new(value, text).positive(resolved || stays))
}

/// Reads the input from an extension of the cluster, or from the command line.
async fn input(args: &WhyArgs) -> Result<ResolutionInput, Failure> {
    match (&args.extension, &args.package) {
        (Some(name), _) => ResolutionInput::of_extension(&args.source, name, &args.request_args).await,
        (None, Some(name)) => {
            let inputs = package(&args.source, name).await?;
            let gates = gates_of(&args.source).await.with(&args.request_args);
            let request = request(name, &args.request_args, &inputs, &gates)?;
            Ok(ResolutionInput {
                request,
                assumption: gates.assumption_on_releases(&inputs),
                inputs,
                conditions: Vec::new(),
                not_selected: Vec::new(),
                extension: None,
            })
        }
        (None, None) => Err(Failure::Usage(
            "give the name of an extension, or --package".to_owned(),
        )),
    }
}

/// Returns the bundle that an extension of the cluster keeps although no bundle is resolved, if any.
async fn kept(
    args: &WhyArgs,
    extension: &ClusterExtension,
    range: Option<&RequestedRange>,
) -> Result<Option<Kept>, Failure> {
    if args.source.is_offline() {
        return Ok(None);
    }
    let cluster = Cluster::connect(&args.source.access).await?;
    Kept::find(&cluster, extension, range).await
}

fn write_conditions(text: &mut String, conditions: &[Value]) {
    for condition in conditions {
        let field = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        let line = format!("{}={} {}", field("type"), field("status"), field("reason"));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{:<11}{}", "Reported", clean(&line));
        if *field("reason") == Reason::HeldByOperator {
            let _ = writeln!(text, "{:<11}{}", "", clean(field("message")));
        }
    }
}

fn write_catalogs(text: &mut String, catalogs: &[CatalogChoice], style: Style) {
    for catalog in catalogs {
        let (paint, outcome) = &catalog.outcome;
        let title = style.paint(Paint::Bold, &format!("Catalog {}", clean(&catalog.name)));
        let outcome = style.paint(*paint, &clean(outcome));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "\n{title} (priority {}): {outcome}", catalog.priority);
        if !catalog.candidates.rows.is_empty() {
            text.push_str(&Table::of(&catalog.candidates).text(style, "  "));
        }
        if catalog.more > 0 {
            let _ = writeln!(text, "  and {} more; --all shows them", catalog.more);
        }
    }
}
