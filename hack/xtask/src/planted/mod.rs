//! `cargo xtask planted`: plants bugs in the controllers, one at a time, and checks that the simulation finds each of them.
//!
//! The bugs in production code are the patches in test/simulation/planted. Each patch is applied to a copy of the workspace, so
//! production code contains no trace of them. The bugs between the controllers and the network are part of the simulation itself.

mod limit;
mod patch;
mod tree;
mod tried;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::ensure;
use olm_proof::{Report, Violation};

use self::patch::Patch;
use self::tree::Tree;
use self::tried::{State, Tried};
use crate::code::{self, Checkout};
use crate::prove::tool::Tool;
use crate::prove::{Adding, Stamp};
use crate::shell;

/// Name for `--only` of all bugs between the controllers and the network.
const SEAM: &str = "seam";
/// Name of the hunt without a planted bug, which must find nothing.
const NONE: &str = "none";

/// Arguments of `cargo xtask planted`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Plant only this bug, the name of a patch without its ending; `seam` for the bugs between the controllers and the network;
    /// repeatable.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Time for all bugs between the controllers and the network.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    limit_seconds: u64,
    #[command(flatten)]
    adding: Adding,
}

/// A run of the chore: the bugs, and the results so far.
struct Run<'a> {
    args: &'a Args,
    patches: Vec<Patch>,
    /// Digest of the code of the simulation, the controllers and the patch, by name of the bug.
    codes: BTreeMap<String, String>,
    state: State,
    stamp: Stamp,
}

/// Plants the selected bugs that were not found yet one after the other, and hunts each of them.
///
/// # Errors
/// The unchanged controllers do not build or break a rule, a bug cannot be tried, or a bug is not found.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let selected = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let patches = patch::all()?;
    ensure!(
        selected(SEAM) || patches.iter().any(|patch| selected(&patch.name)),
        "there is no planted bug {}",
        args.only.join(", ")
    );
    let checkout = Checkout::read()?;
    let (stamp, mut state): (_, State) =
        Stamp::of_chore("planted", &args.adding, args.only.is_empty(), &checkout)?;
    let codes = codes(&patches, &checkout)?;
    for name in codes.keys().filter(|name| args.adding.anew && selected(name)) {
        state.forget(name);
    }
    let wanted: Vec<usize> = (0..patches.len())
        .filter(|at| selected(&patches[*at].name))
        .collect();
    let mut run = Run {
        args,
        patches,
        codes,
        state,
        stamp,
    };
    run.plant(&wanted, &checkout)?;
    if selected(SEAM) && run.state.is_open(SEAM, &run.codes[SEAM]) {
        run.seam()?;
    }
    run.save()?;
    let report = run.report();
    let missed: Vec<&str> = report
        .violations
        .iter()
        .map(|missed| missed.text.as_str())
        .collect();
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

/// Returns a digest for each bug, by name. It covers the simulation with its controllers, and the patch.
fn codes(patches: &[Patch], checkout: &Checkout) -> anyhow::Result<BTreeMap<String, String>> {
    let mut covered = checkout.packages.closure("olm-simulation", false)?;
    covered.insert("config".to_owned());
    let base = code::digests(&checkout.files, &covered);
    let mut codes = BTreeMap::new();
    for name in [NONE, SEAM] {
        codes.insert(name.to_owned(), code::sum(base.clone()));
    }
    for patch in patches {
        let file = format!("{}/{}.patch", patch::FOLDER, patch.name);
        let mut all = base.clone();
        all.extend(code::digests(&checkout.files, [&file]));
        codes.insert(patch.name.clone(), code::sum(all));
    }
    Ok(codes)
}

impl Run<'_> {
    /// Plants the wanted patches whose bugs were not found yet, and hunts each of them. `wanted` has indexes of patches.
    fn plant(&mut self, wanted: &[usize], checkout: &Checkout) -> anyhow::Result<()> {
        let is_open = |run: &Self, name: &str| run.state.is_open(name, &run.codes[name]);
        let open: Vec<Patch> = wanted
            .iter()
            .map(|at| &self.patches[*at])
            .filter(|patch| is_open(self, &patch.name))
            .cloned()
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let tree = Tree::copy(checkout)?;
        let begin = Instant::now();
        tree.build()?;
        eprintln!(
            "the unchanged simulation is built: {} s",
            begin.elapsed().as_secs()
        );
        if is_open(self, NONE) {
            // If the controllers broke a rule without a bug, this rule would seem to find every bug.
            let base = tree.hunt(None)?;
            let broken = base.found.map(|broken| Violation {
                text: format!("Without a planted bug: {}", broken.text),
                ..broken
            });
            self.put(NONE, "without a planted bug", base.text, broken)?;
        }
        for patch in &open {
            let tried = tree.with(patch, |tree| {
                tree.build()?;
                tree.hunt(patch.scenario.as_deref())
            });
            let (text, missed) = match tried {
                Ok(hunt) if hunt.found.is_some() => (hunt.text, None),
                Ok(hunt) => (hunt.text, Some(missed(patch, "is not found"))),
                Err(error) => (
                    format!("cannot be tried: {error:#}"),
                    Some(missed(patch, "cannot be tried")),
                ),
            };
            eprintln!("{}: {text}", patch.name);
            let name = format!("{}: {} ({})", patch.name, patch.what, patch.source);
            self.put(&patch.name, &name, text, missed)?;
        }
        Ok(())
    }

    /// Hunts the bugs between the controllers and the network. They need no change of the code, so they run in the build of the other
    /// parts of the proof.
    fn seam(&mut self) -> anyhow::Result<()> {
        let path = shell::target_dir().join("planted-seam.json");
        let mut command = Tool::Simulate.command()?;
        command.args([
            "planted",
            "--limit-seconds",
            &self.args.limit_seconds.to_string(),
            "--report",
        ]);
        let outcome = shell::run(command.arg(&path));
        // The command also fails if a bug is not found; its report says which one.
        let Ok(found) = Report::read(&path) else {
            return outcome.and(Err(anyhow::anyhow!("the simulation wrote no report")));
        };
        std::fs::remove_file(&path)?;
        let tried = Tried {
            code: self.codes[SEAM].clone(),
            figures: found.figures,
            violations: found.violations,
            not_covered: found.not_covered,
        };
        self.state.put(SEAM, tried);
        self.save()
    }

    /// Stores the result of a bug and writes the report, so that a stopped run leaves its results.
    fn put(
        &mut self,
        name: &str,
        what: &str,
        figure: String,
        missed: Option<Violation>,
    ) -> anyhow::Result<()> {
        let tried = Tried {
            code: self.codes[name].clone(),
            figures: vec![(what.to_owned(), figure)],
            violations: missed.into_iter().collect(),
            not_covered: Vec::new(),
        };
        self.state.put(name, tried);
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        self.stamp
            .save(self.report(), &self.state, self.args.adding.report.as_deref())
    }

    fn report(&self) -> Report {
        let only = self.args.only.iter().map(|only| format!(" --only {only}"));
        let mut report = Report {
            title: "Planted bugs".to_owned(),
            about: "Each bug is planted alone: as a patch of the production code, or between the controllers and the network, as what a \
                    controller with the bug would send or would not see. The simulation runs its scenarios until an invariant or a check \
                    breaks, for at most a minute of a processor. Results of several runs add up while the code is the same."
                .to_owned(),
            command: format!("cargo xtask planted{}", only.collect::<String>()),
            ..Report::default()
        };
        let patches = self.patches.iter().map(|patch| patch.name.as_str());
        let found = patches
            .clone()
            .filter(|name| !self.state.is_open(name, &self.codes[*name]));
        report.figures.push((
            "bugs in production code found, with this code".to_owned(),
            format!("{} of {}", found.count(), self.patches.len()),
        ));
        let names: Vec<(&str, &str)> = [NONE]
            .into_iter()
            .chain(patches)
            .chain([SEAM])
            .map(|name| (name, self.codes[name].as_str()))
            .collect();
        self.state.report(&names, &mut report);
        report
    }
}

/// Returns the violation for a bug that the simulation did not find.
fn missed(patch: &Patch, how: &str) -> Violation {
    Violation {
        invariant: "adequacy".to_owned(),
        seed: patch.name.clone(),
        text: format!("The planted bug {} {how}: {}", patch.name, patch.what),
    }
}
