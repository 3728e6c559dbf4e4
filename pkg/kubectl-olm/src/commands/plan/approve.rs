//! Approval of a plan, or of a joint plan, that was just shown.

use std::io::Write as _;

use olm_plan::{JointPlan, Plan};

use crate::cli::Format;
use crate::cli::plan::PlanArgs;
use crate::commands::common::confirm;
use crate::commands::rollout::{JointApproval, PlanApproval};
use crate::failure::Failure;
use crate::plan_report::text;
use crate::source::Cluster;
use crate::style::Style;

/// Approves the plan. Without `--yes`, shows it on standard error and asks. Returns the line that says what was done.
pub(super) async fn approve(args: &PlanArgs, plan: &Plan, style: Style) -> Result<String, Failure> {
    let cluster = Cluster::connect(&args.source.access).await?;
    // Prepared before the question, so that nobody reads a plan that cannot be approved.
    let approval = PlanApproval::prepare(&cluster, plan).await?;
    let shown = || text(plan, Format::Table, style);
    ask(args, &plan.digest, shown)?;
    approval.write(&cluster).await
}

/// Approves a joint plan in the specs of all its extensions. Returns the lines that say what was done.
pub(super) async fn approve_joint(
    cluster: &Cluster,
    args: &PlanArgs,
    joint: &JointPlan,
    shown: &str,
) -> Result<String, Failure> {
    let approval = JointApproval::prepare(cluster, joint).await?;
    ask(args, &joint.digest, || shown.to_owned())?;
    approval.write(cluster).await
}

/// Asks for the approval, after the plan on standard error, unless it was given by `--yes`.
fn ask(args: &PlanArgs, digest: &str, shown: impl Fn() -> String) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    // A failed write cannot be reported; the question follows.
    let _ = std::io::stderr().lock().write_all(shown().as_bytes());
    confirm(
        &format!("Approve plan {digest}?"),
        &format!("the plan {digest} is not approved: there is no terminal to ask on; confirm with --yes"),
        "nothing is approved",
    )
}
