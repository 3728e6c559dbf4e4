//! Tests of the flags of both controllers: the manifests use only existing flags, and all flags of upstream exist.

#[path = "reference/upstream.rs"]
mod upstream;

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{CommandFactory as _, Parser};
use olm_harness::workspace;
use olm_runtime::args::command_line;
use olm_runtime::features::GATES;

#[test]
fn our_own_manifests_are_understood() -> Result<()> {
    manifests::<olm_catalogd::Args>("catalogd")?;
    manifests::<olm_operator_controller::Args>("operator-controller")
}

fn manifests<A: Parser>(component: &str) -> Result<()> {
    for folder in ["manager", "overlays/cert-manager", "overlays/openshift"] {
        let path = workspace::root().join(format!("config/{folder}/{component}.yaml"));
        let manifest = std::fs::read_to_string(&path)?;
        let flags: Vec<&str> = manifest.lines().filter_map(flag).collect();
        ensure!(!flags.is_empty(), "no flags in {}", path.display());
        let line = std::iter::once(component).chain(flags).map(OsString::from);
        A::try_parse_from(command_line(line)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Returns the flag in a line of a manifest that is an item of a list or the `value` of a patch.
fn flag(line: &str) -> Option<&str> {
    ["- ", "value: "].iter().find_map(|before| {
        let flag = line.split_once(&format!("{before}--"))?.1;
        let start = line.len() - flag.len() - "--".len();
        Some(line.get(start..)?.trim_end_matches('}'))
    })
}

#[test]
fn the_table_of_feature_gates_is_complete() -> Result<()> {
    let text = std::fs::read_to_string(workspace::root().join("docs/operations.md"))?;
    let section = text.split("### Feature gates\n").nth(1).context("no section")?;
    let lines = section.lines().take_while(|line| !line.starts_with('#'));
    let mut documented: Vec<Vec<&str>> = Vec::new();
    for row in lines.filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, gate, binary, _, here, ..] = cells.as_slice() else {
            bail!("not a row of the table: {row}");
        };
        documented.push(vec![gate, binary, here.split(' ').next().unwrap_or_default()]);
    }
    let mut known: Vec<Vec<String>> = GATES
        .iter()
        .map(|gate| {
            let here = match (gate.locked, gate.default) {
                (true, _) => "always",
                (false, true) => "on",
                (false, false) => "off",
            };
            vec![
                format!("`{}`", gate.name),
                gate.binary.name().to_owned(),
                here.to_owned(),
            ]
        })
        .collect();
    documented.sort_unstable();
    known.sort_unstable();
    assert_eq!(
        documented, known,
        "docs/operations.md against the gates in the code"
    );
    Ok(())
}

#[test]
fn no_flag_of_upstream_is_unknown() {
    for (command, own) in [
        (olm_catalogd::Args::command(), upstream::CATALOGD.as_slice()),
        (
            olm_operator_controller::Args::command(),
            upstream::OPERATOR_CONTROLLER.as_slice(),
        ),
    ] {
        let known: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        for flag in upstream::COMMON.iter().chain(own) {
            assert!(known.contains(flag), "{} lacks --{flag}", command.get_name());
        }
        assert!(command.find_subcommand("version").is_some());
    }
}
