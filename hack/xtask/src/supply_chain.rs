//! `cargo xtask supply-chain`: checks the sources, licences and advisories of all crates, and the bill of materials of each
//! program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use olm_proof::{Report, Violation};
use serde::Deserialize;
use serde_json::Value;

use crate::shell::{self, cargo, git, root};
use crate::{check, dist};

/// Database of advisories that cargo-deny fetches by default.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";

/// Arguments of `cargo xtask supply-chain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Git checkout of the database of advisories, for a machine that cannot fetch the newest one.
    #[arg(long, value_name = "DIR")]
    advisories: Option<PathBuf>,
    /// Also make a release twice, and compare the hashes. This compiles all programs twice, with all optimisations.
    #[arg(long)]
    builds: bool,
    /// Write the result as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs all checks. A failed check does not stop the others.
///
/// # Errors
/// A check fails. If the database of advisories cannot be fetched, the report says so, and this is no error.
#[expect(
    clippy::print_stdout,
    reason = "the result of each check is this chore's result"
)]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut report = Report {
        title: "Supply chain".to_owned(),
        about: "cargo-deny checks the advisories (unmaintained crates among them), licences and sources of all crates, and that none is \
                banned. The bill of materials of each program lists the crates that it links. A release is made twice, compiled in two folders."
            .to_owned(),
        command: if args.builds {
            "cargo xtask supply-chain --builds".to_owned()
        } else {
            "cargo xtask supply-chain".to_owned()
        },
        ..Report::default()
    };
    outcome(&mut report, "licences, sources, bans", check::deny());
    let rules = fs::read_to_string(root().join("deny.toml")).context("cannot read deny.toml")?;
    match &args.advisories {
        Some(database) => advisories_of(&mut report, database, &rules)?,
        None => newest_advisories(&mut report),
    }
    for accepted in accepted(&rules)? {
        report.not_covered.push(format!("Accepted advisory: {accepted}."));
    }
    bills(&mut report)?;
    if args.builds {
        builds(&mut report);
    } else {
        report
            .not_covered
            .push("Equal hashes of two builds: `--builds` makes a release twice.".to_owned());
    }
    for (what, figure) in &report.figures {
        println!("{what}: {figure}");
    }
    if let Some(path) = &args.report {
        report
            .write(path)
            .with_context(|| format!("cannot write the report {}", path.display()))?;
    }
    let broken: Vec<&str> = report
        .violations
        .iter()
        .map(|violation| violation.text.as_str())
        .collect();
    ensure!(broken.is_empty(), "{}", broken.join(" "));
    Ok(())
}

/// Adds the result of a check.
fn outcome(report: &mut Report, what: &str, result: anyhow::Result<()>) {
    let figure = match result {
        Ok(()) => "passed",
        Err(error) => {
            report.violations.push(violation(format!("{what}: {error:#}.")));
            "failed"
        }
    };
    report.figures.push((what.to_owned(), figure.to_owned()));
}

fn violation(text: String) -> Violation {
    Violation {
        invariant: "supply-chain".to_owned(),
        seed: String::new(),
        text,
    }
}

/// Checks the advisories of the newest database, which comes from the network.
fn newest_advisories(report: &mut Report) {
    if let Err(error) = shell::output(cargo().args(["deny", "fetch", "db"])) {
        eprintln!("{error:#}");
        report.figures.push((
            "advisories".to_owned(),
            "not checked: the database of advisories cannot be fetched".to_owned(),
        ));
        report
            .not_covered
            .push("Advisories: this machine could not fetch their database.".to_owned());
        return;
    }
    let checked = shell::run(cargo().args(["deny", "--offline", "check", "advisories"]));
    outcome(report, "advisories, unmaintained and yanked crates", checked);
}

/// Checks the advisories of this database by `rules`, the text of deny.toml. Yanked crates are not known without the network.
fn advisories_of(report: &mut Report, database: &Path, rules: &str) -> anyhow::Result<()> {
    let database = database
        .canonicalize()
        .with_context(|| format!("there is no database of advisories at {}", database.display()))?;
    let date = shell::output(git(&database).args(["log", "-1", "--format=%cs"]))?;
    let (config, copies) = (
        shell::target_dir().join("deny-advisories.toml"),
        shell::target_dir().join("advisories"),
    );
    fs::write(&config, with_database_in(rules, &copies))
        .with_context(|| format!("cannot write {}", config.display()))?;
    let deny = || {
        let mut command = cargo();
        // cargo-deny takes no database of a file URL, but git can read it from elsewhere.
        command
            .env("GIT_CONFIG_COUNT", "1")
            .env(
                "GIT_CONFIG_KEY_0",
                format!("url.file://{}.insteadOf", database.display()),
            )
            .env("GIT_CONFIG_VALUE_0", DATABASE)
            .args(["deny", "--config"])
            .arg(&config);
        command
    };
    shell::run(deny().args(["fetch", "db"]))?;
    let checked = shell::run(deny().args(["--offline", "check", "advisories"]));
    let what = format!("advisories up to {}, unmaintained crates", date.trim());
    outcome(report, &what, checked);
    report
        .not_covered
        .push(format!("Advisories after {}, and yanked crates.", date.trim()));
    Ok(())
}

/// Returns the configuration `deny` of cargo-deny with copies of databases in the folder `copies`, which git makes.
fn with_database_in(deny: &str, copies: &Path) -> String {
    let section = format!(
        "[advisories]\ndb-path = \"{}\"\ngit-fetch-with-cli = true\n",
        copies.display()
    );
    deny.replacen("[advisories]\n", &section, 1)
}

/// Returns the advisories that `rules`, the text of deny.toml, accept, each with its reason.
fn accepted(rules: &str) -> anyhow::Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Deny {
        advisories: Advisories,
    }
    #[derive(Deserialize)]
    struct Advisories {
        #[serde(default)]
        ignore: Vec<Accepted>,
    }
    #[derive(Deserialize)]
    struct Accepted {
        id: String,
        reason: String,
    }
    let deny: Deny = toml::from_str(rules).context("cannot read the advisories of deny.toml")?;
    let accepted = deny.advisories.ignore.into_iter();
    Ok(accepted
        .map(|one| format!("{}: {}", one.id, one.reason))
        .collect())
}

/// Checks that every crate in a bill of materials has a licence, and that every crate of a registry has a hash.
fn bills(report: &mut Report) -> anyhow::Result<()> {
    for (program, document) in dist::bills_of_materials(env!("CARGO_PKG_VERSION"), "1970-01-01T00:00:00Z")? {
        let components = document["components"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for component in components {
            if let Some(gap) = gap(component) {
                report.violations.push(violation(format!(
                    "The bill of materials of {program} lacks {gap}."
                )));
            }
        }
        report.figures.push((
            format!("crates in {program}.cdx.json"),
            components.len().to_string(),
        ));
    }
    Ok(())
}

/// Makes a release twice, and compares the hashes of all files.
fn builds(report: &mut Report) {
    let made = dist::twice();
    if let Ok(files) = &made {
        for arch in dist::architectures() {
            if !files.iter().any(|file| file.contains(arch)) {
                report
                    .not_covered
                    .push(format!("Builds for {arch}: this machine cannot link for it."));
            }
        }
        report
            .figures
            .push(("files of a release".to_owned(), files.join(", ")));
    }
    outcome(
        report,
        "equal hashes of these files in two builds",
        made.map(drop),
    );
}

/// Returns the missing part of a component, if any.
fn gap(component: &Value) -> Option<String> {
    let name = component["bom-ref"].as_str().unwrap_or_default();
    if component.get("licenses").is_none() {
        return Some(format!("a licence of {name}"));
    }
    let is_of_registry = component.get("purl").is_some();
    (component.get("hashes").is_none() && is_of_registry).then(|| format!("a hash of {name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_configuration_differs_in_the_folder_of_the_database() {
        let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
        let changed = with_database_in(&deny, Path::new("/copies"));
        let changed: toml::Value = toml::from_str(&changed).unwrap();
        let mut advisories = changed["advisories"].as_table().unwrap().clone();
        assert_eq!(advisories.remove("db-path").unwrap().as_str(), Some("/copies"));
        assert_eq!(
            advisories.remove("git-fetch-with-cli").unwrap().as_bool(),
            Some(true)
        );
        let before: toml::Value = toml::from_str(&deny).unwrap();
        assert_eq!(before["advisories"].as_table(), Some(&advisories));
    }

    #[test]
    fn crates_of_a_registry_need_a_licence_and_a_hash() {
        let ours = json!({"name": "olm-text", "bom-ref": "o", "licenses": []});
        assert_eq!(gap(&ours), None);
        let mut other = json!({"name": "serde", "bom-ref": "p", "purl": "p", "licenses": []});
        assert_eq!(gap(&other).unwrap(), "a hash of p");
        other["hashes"] = json!([]);
        assert_eq!(gap(&other), None);
        assert_eq!(gap(&json!({"bom-ref": "p"})).unwrap(), "a licence of p");
    }
}
