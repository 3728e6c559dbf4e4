//! `cargo xtask plans DIR...`: makes the plan of the upgrade between each two consecutive versions of bundles, and prints one
//! line for each plan. A sweep can cover thousands of bundles.
//!
//! The bundles of a package are the folders with the same parent, sorted by version. A line is
//! `PARENT<tab>FROM<tab>TO<tab>VERDICT<tab>FIELDS<tab>RIGHTS<tab>IMAGES`. The verdict is `safe` or the number of CRD findings;
//! the next numbers are those of changed fields, of gained rules of rights, and of new images. A pair that cannot be compared has
//! the line `PARENT<tab>FROM<tab>TO<tab>error<tab>REASON`. The last line, on standard error, has the totals and the time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use olm_bundle::RenderOptions;
use olm_bundle::crd_safety::Rules;
use olm_plan::{Change, Plan, Side, compare_crds};
use olm_version::VersionRelease;
use serde_json::{Value, json};

use crate::sweep::{self, Args, Failure};

/// Namespace that an operator watches if it can watch neither all namespaces nor its own.
const WATCHED: &str = "watched";

/// Result for one pair of bundles.
struct Pair {
    /// Names of both folders.
    from: String,
    to: String,
    result: Result<Box<Plan>, String>,
}

/// Totals of a sweep.
#[derive(Default)]
struct Totals {
    pairs: usize,
    errors: usize,
    /// Number of pairs with CRD findings.
    unsafe_crds: usize,
    /// Number of pairs in which the bundle gains rights.
    gains: usize,
}

/// Prints the line of every pair, and the totals.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let folders = args.folders();
    let mut packages: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for folder in &folders {
        let parent = folder.parent().unwrap_or(folder).to_owned();
        packages.entry(parent).or_default().push(folder.clone());
    }
    let parents: Vec<PathBuf> = packages.keys().cloned().collect();
    let options = RenderOptions {
        single_own_namespace: true,
        ..args.options()
    };
    let mut totals = Totals::default();
    let work = |parent: &Path| pairs(packages.get(parent).cloned().unwrap_or_default(), &options);
    sweep::print(io::stdout().lock(), &parents, work, |parent, pairs| {
        for pair in &pairs {
            totals.add(pair);
        }
        pairs.iter().map(|pair| pair.line(parent)).collect()
    })?;
    eprintln!(
        "{} bundles, {} pairs in {:.0} s: {} with CRD findings, {} gain rights, {} not compared",
        folders.len(),
        totals.pairs,
        started.elapsed().as_secs_f64(),
        totals.unsafe_crds,
        totals.gains,
        totals.errors
    );
    Ok(())
}

impl Totals {
    fn add(&mut self, pair: &Pair) {
        self.pairs += 1;
        match &pair.result {
            Err(_) => self.errors += 1,
            Ok(plan) => {
                self.unsafe_crds += usize::from(findings(plan) > 0);
                self.gains += usize::from(!plan.rights.bundle.gained.is_empty());
            }
        }
    }
}

/// Returns the number of CRD findings of a plan.
fn findings(plan: &Plan) -> usize {
    plan.crds.iter().map(|crd| crd.findings.len()).sum()
}

impl Pair {
    /// Returns the line of the pair.
    fn line(&self, parent: &Path) -> String {
        let head = format!("{}\t{}\t{}", parent.display(), self.from, self.to);
        match &self.result {
            Err(reason) => format!("{head}\terror\t{}\n", sweep::escape(reason)),
            Ok(plan) => {
                let verdict = match findings(plan) {
                    0 => "safe".to_owned(),
                    count => count.to_string(),
                };
                let rights = &plan.rights.bundle;
                format!(
                    "{head}\t{verdict}\t{}\t{}\t{}\n",
                    plan.counts.fields,
                    rights.gained.len() + rights.more_gained,
                    plan.images.added.len()
                )
            }
        }
    }
}

/// Compares each bundle of a package with its next version.
fn pairs(mut folders: Vec<PathBuf>, options: &RenderOptions) -> Vec<Pair> {
    let name = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let version = |folder: &PathBuf| {
        let name = name(folder);
        VersionRelease::parse_legacy(name.strip_prefix('v').unwrap_or(&name)).ok()
    };
    folders.sort_by(|a, b| match (version(a), version(b)) {
        (Some(a), Some(b)) => a.cmp_precedence(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    let mut out = Vec::new();
    let mut before: Option<(String, Result<Vec<Value>, String>)> = None;
    for folder in &folders {
        let (to, objects) = (name(folder), rendered(folder, options));
        if let Some((from, old)) = before {
            out.push(Pair {
                result: compare(old, objects.clone(), &options.install_namespace),
                from,
                to: to.clone(),
            });
        }
        before = Some((to, objects));
    }
    out
}

/// Renders a bundle with the given configuration, or else so that it watches its own namespace, or else another one. If all of
/// these fail, returns the first reason.
fn rendered(folder: &Path, options: &RenderOptions) -> Result<Vec<Value>, String> {
    let mut first = None;
    let own = json!({"watchNamespace": options.install_namespace});
    for config in [
        options.config.clone(),
        Some(own),
        Some(json!({"watchNamespace": WATCHED})),
    ] {
        let options = RenderOptions {
            config,
            ..options.clone()
        };
        match sweep::render_folder(folder, &options) {
            Ok((_, objects)) => return Ok(objects),
            Err(Failure::Refused(reason) | Failure::Unreadable(reason)) => first = first.or(Some(reason)),
        }
    }
    Err(first.unwrap_or_default())
}

/// Makes the plan of an upgrade from `before` to `after`.
fn compare(
    before: Result<Vec<Value>, String>,
    after: Result<Vec<Value>, String>,
    namespace: &str,
) -> Result<Box<Plan>, String> {
    let (before, after) = (before?, after?);
    let crds = compare_crds(&before, &after, Rules::Ours);
    let side = |objects| Side {
        objects,
        ..Side::default()
    };
    let change = Change {
        namespace: namespace.to_owned(),
        from: Some(side(before)),
        to: side(after),
        crds,
        ..Change::default()
    };
    Ok(Box::new(change.plan()))
}

#[cfg(test)]
mod tests {
    use olm_bundle::Certificates;

    use super::*;

    #[test]
    fn versions_are_compared_in_their_order() {
        let root = crate::shell::root().join("test/testdata/sample-operator");
        let options = RenderOptions {
            certificates: Certificates::CertManager,
            ..RenderOptions::new("olm-test")
        };
        let folders = ["2.0.0", "1.0.0", "none", "1.1.0"].map(|version| root.join(version));
        let lines: Vec<String> = pairs(folders.to_vec(), &options)
            .iter()
            .map(|pair| pair.line(Path::new("p")))
            .collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("p\tnone\t1.0.0\terror\tthere is no such folder"),
            "{lines:?}"
        );
        assert_eq!(lines[1], "p\t1.0.0\t1.1.0\tsafe\t4\t0\t1\n");
        assert_eq!(lines[2], "p\t1.1.0\t2.0.0\tsafe\t3\t0\t1\n");
    }
}
