//! `plan`: everything that a change of an extension's bundle would change.

mod approve;
mod bundles;
pub(super) mod checks;
pub(crate) mod cluster;
mod dependencies;
mod hold;
mod identity;
mod joint;
mod live;
pub(crate) mod place;

use olm_plan::Outcome;
use serde_json::json;

use crate::cli::Format;
use crate::cli::plan::PlanArgs;
use crate::commands::common::progress;
use crate::failure::Failure;
use crate::plan_report::text;
use crate::report::Report;
use crate::style::Style;

/// Prints the plan, and approves it if asked: exit code 0 if there is nothing to do or the plan is approved, 1 for a plan, 2 for one that
/// would be refused.
pub(crate) async fn run(args: PlanArgs, format: Format, style: Style) -> Result<Report, Failure> {
    if args.extensions.len() > 1 {
        return joint::run(&args, format, style).await;
    }
    let plan = match (&args.from, &args.to) {
        (Some(from), Some(to)) => bundles::plan(&args, from, to).await?,
        _ => cluster::plan(&args).await?,
    };
    let outcome = plan.outcome();
    let mut shown = text(&plan, format, style);
    let approved = args.approve && outcome == Outcome::Change;
    if approved {
        let done = approve::approve(&args, &plan, style).await?;
        match format {
            // Without --yes, the plan was shown before the question.
            Format::Table if !args.yes => shown = done,
            Format::Table => shown.push_str(&done),
            _ => progress(done.trim_end()),
        }
    }
    let mut report = Report::new(json!(plan), shown).positive(outcome == Outcome::Nothing || approved);
    report.refused = outcome == Outcome::Refused;
    Ok(report)
}
