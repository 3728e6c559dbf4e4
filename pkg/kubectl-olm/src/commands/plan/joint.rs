//! Joint plan: extensions whose new versions need each other's.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use olm_plan::{JointPlan, Outcome, Pin};
use olm_resolve::constraint::InstalledBundle;
use olm_resolve::{CatalogLookup, Installed, Party, Resolution, Rule, joint_move, resolve};
use olm_text::name::PackageName;
use olm_version::{BundleVersion, VersionRelease};
use serde_json::json;

use super::{approve, cluster};
use crate::cli::Format;
use crate::cli::plan::PlanArgs;
use crate::commands::common::progress;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::plan_report::text;
use crate::report::Report;
use crate::resolution_input::ResolutionInput;
use crate::source::{Cluster, Joining, Surroundings};
use crate::style::Style;
use crate::table::clean;

/// Maximum number of extensions, by the schema of `spec.rollout.jointPlan`.
const MAX_MEMBERS: usize = 8;
/// Maximum number of versions of one extension that the search looks at, highest first.
const MAX_CANDIDATES: usize = 32;

/// Extension of a joint plan, with the bundles that it can have after the move.
struct Member {
    name: String,
    /// Candidates, highest first; the installed bundle is the last one.
    candidates: Vec<Candidate>,
}

/// Bundle that an extension can move to.
struct Candidate {
    version: String,
    party: Party,
    /// True if the extension has the bundle already.
    stays: bool,
}

/// Prints the joint plan, and approves it if asked. The exit codes are those of a single plan.
pub(super) async fn run(args: &PlanArgs, format: Format, style: Style) -> Result<Report, Failure> {
    check_usage(args, format)?;
    let cluster = Cluster::connect(&args.source.access).await?;
    let joint = plan(&cluster, args).await?;
    let outcome = joint.outcome();
    let mut shown = joint_text(&joint, style);
    let approved = args.approve && outcome == Outcome::Change;
    if approved {
        let done = approve::approve_joint(&cluster, args, &joint, &shown).await?;
        match format {
            Format::Table if !args.yes => shown = done,
            Format::Table => shown.push_str(&done),
            _ => progress(done.trim_end()),
        }
    }
    let mut report = Report::new(json!(joint), shown).positive(outcome == Outcome::Nothing || approved);
    report.refused = outcome == Outcome::Refused;
    Ok(report)
}

fn check_usage(args: &PlanArgs, format: Format) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
    let distinct: BTreeSet<&String> = args.extensions.iter().collect();
    if distinct.len() < args.extensions.len() {
        return usage("an extension is named twice: name each extension of a joint plan once");
    }
    if distinct.len() > MAX_MEMBERS {
        return usage("a joint plan has at most 8 extensions");
    }
    if args.file.is_some() || args.to.is_some() || !args.channels.is_empty() {
        return usage("--filename, --to and --channel are for the plan of one extension");
    }
    if matches!(format, Format::Markdown | Format::Html) {
        return usage(
            "-o markdown and -o html are formats of the plan of one extension: use -o table, json or yaml",
        );
    }
    Ok(())
}

/// Finds the highest versions whose requirements hold together, and makes their plans.
async fn plan(cluster: &Cluster, args: &PlanArgs) -> Result<JointPlan, Failure> {
    let gates = cluster.gates().await;
    let mut members = Vec::new();
    for name in &args.extensions {
        members.push(member(cluster, args, &gates, name).await?);
    }
    let requirements: Vec<_> = members
        .iter()
        .flat_map(|member| &member.candidates)
        .flat_map(|candidate| candidate.party.requirements.iter().cloned())
        .collect();
    let around = cluster.surroundings(&args.extensions, &requirements).await?;
    for member in &mut members {
        add_installed(member, &around);
    }
    let found = search(&members, around).await?;
    let chosen: Vec<(&Member, usize, &Candidate)> = members
        .iter()
        .zip(found)
        .filter_map(|(member, position)| Some((member, position, member.candidates.get(position)?)))
        .collect();
    let (mut plans, mut unmoved, mut pins) = (Vec::new(), Vec::new(), Vec::new());
    for (member, position, candidate) in &chosen {
        if candidate.stays {
            unmoved.push(member.name.clone());
            continue;
        }
        let joining: Vec<Joining> = chosen
            .iter()
            .filter(|(other, ..)| other.name != member.name)
            .map(|(other, _, candidate)| Joining {
                extension: other.name.clone(),
                party: candidate.party.clone(),
            })
            .collect();
        let version = (*position > 0).then_some(candidate.version.as_str());
        if let Some(version) = version {
            pins.push(Pin {
                extension: member.name.clone(),
                version: version.to_owned(),
            });
        }
        progress(&format!(
            "planning ClusterExtension {} to {}",
            member.name, candidate.version
        ));
        let name = Some(member.name.as_str());
        plans.push(cluster::plan_of(cluster, args, &gates, name, version, &joining).await?);
    }
    Ok(JointPlan::new(plans, unmoved, pins))
}

/// Searches on a thread of its own: CEL expressions are bounded, but many combinations can take a while.
async fn search(members: &[Member], around: Surroundings) -> Result<Vec<usize>, Failure> {
    let parties: Vec<Vec<Party>> = members
        .iter()
        .map(|member| {
            member
                .candidates
                .iter()
                .map(|candidate| candidate.party.clone())
                .collect()
        })
        .collect();
    let searching =
        tokio::task::spawn_blocking(move || joint_move(&parties, &around.others, &around.served)).await;
    let found = searching
        .map_err(|_| Failure::NoPlan("the search for the joint move was interrupted".to_owned()))?
        .map_err(|error| Failure::Refused(error.to_string()))?;
    found.ok_or_else(|| {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        Failure::Refused(format!(
            "no versions of {} meet each other's requirements; `kubectl olm why NAME` names what one of them lacks",
            names.join(", ")
        ))
    })
}

/// Reads the extension and its candidates from the catalogs.
async fn member(cluster: &Cluster, args: &PlanArgs, gates: &Gates, name: &str) -> Result<Member, Failure> {
    let (extension, installed) = cluster::wanted(cluster, args, Some(name), None).await?;
    let present = installed.clone();
    let input = ResolutionInput::of(cluster, &args.source, extension, installed, gates);
    let input = input.await.map_err(cluster::no_plan)?;
    let found = resolve(&input.request, &input.inputs).map_err(|error| {
        Failure::Refused(format!(
            "no bundle can be installed for ClusterExtension {name:?}: {error}"
        ))
    })?;
    Ok(Member {
        name: name.to_owned(),
        candidates: candidates(&found, &input, present.as_ref()),
    })
}

/// Returns the chosen bundle and the lower ones of its catalog that the spec admits, without the installed one.
fn candidates(found: &Resolution, input: &ResolutionInput, installed: Option<&Installed>) -> Vec<Candidate> {
    let catalog = input.inputs.iter().find(|catalog| catalog.name == found.catalog);
    let explained = found
        .explanation
        .catalogs
        .iter()
        .find(|catalog| catalog.name == found.catalog);
    let (Some(catalog), Some(explained)) = (catalog, explained) else {
        return Vec::new();
    };
    let CatalogLookup::Found(content) = &catalog.lookup else {
        return Vec::new();
    };
    let mut admitted: Vec<(&VersionRelease, bool, &str)> = explained
        .candidates
        .iter()
        .filter(|candidate| matches!(candidate.ruled_out, None | Some(Rule::Lower | Rule::Deprecated)))
        .filter(|candidate| installed.is_none_or(|installed| installed.name != candidate.bundle))
        .filter_map(|candidate| {
            let chosen = candidate.bundle == found.bundle;
            Some((candidate.version.as_ref()?, chosen, candidate.bundle.as_str()))
        })
        .collect();
    // The chosen bundle first: operator-controller chooses it again.
    admitted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| b.0.cmp_precedence(a.0)));
    let candidate = |(version, _, name): (&VersionRelease, bool, &str)| {
        let bundle = content.bundles.iter().find(|bundle| bundle.name == name)?;
        let version = BundleVersion::spelled(version.clone(), input.request.release_support);
        Some(Candidate {
            version: version.as_str().to_owned(),
            party: party(&input.request.package, &version, &bundle.properties)?,
            stays: false,
        })
    };
    admitted
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter_map(candidate)
        .collect()
}

fn party(package: &PackageName, version: &BundleVersion, properties: &[olm_fbc::Property]) -> Option<Party> {
    let bundle = InstalledBundle::with(package.clone(), version, properties)?;
    Some(Party::new(bundle, properties))
}

/// Adds the installed bundle, since an extension may keep it.
fn add_installed(member: &mut Member, around: &Surroundings) {
    if let Some(party) = around.members.get(&member.name) {
        member.candidates.push(Candidate {
            version: party.bundle.version.to_string(),
            party: party.clone(),
            stays: true,
        });
    }
}

/// Returns the plans as text, after the facts of the joint plan.
fn joint_text(joint: &JointPlan, style: Style) -> String {
    // Writing into a String cannot fail.
    let mut out = String::new();
    let _ = writeln!(out, "{:<11}{}", "Joint plan", joint.digest);
    for name in &joint.unmoved {
        let _ = writeln!(out, "{:<11}{} keeps its version", "", clean(name));
    }
    for pin in &joint.pins {
        let (name, version) = (clean(&pin.extension), clean(&pin.version));
        let _ = writeln!(
            out,
            "{:<11}{name} must be limited to {version}: kubectl olm upgrade {name} --version {version} --no-wait",
            ""
        );
    }
    for plan in &joint.plans {
        let _ = write!(out, "\n{}", text(plan, Format::Table, style));
    }
    out
}
