//! The flags of both controllers: our manifests pass what there is, and what there is is documented.

use std::ffi::OsString;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use olm_harness::workspace;
use olm_runtime::args::command_line;

#[test]
fn our_own_manifests_are_understood() -> Result<()> {
    manifests::<olm_catalogd::Args>("catalogd")?;
    manifests::<olm_operator_controller::Args>("operator-controller")
}

#[test]
fn every_flag_is_in_the_documentation() -> Result<()> {
    documented::<olm_catalogd::Args>()?;
    documented::<olm_operator_controller::Args>()
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

/// The flag of an item of a list, or of a patch's `value`.
fn flag(line: &str) -> Option<&str> {
    ["- ", "value: "].iter().find_map(|before| {
        let flag = line.split_once(&format!("{before}--"))?.1;
        let start = line.len() - flag.len() - "--".len();
        Some(line.get(start..)?.trim_end_matches('}'))
    })
}

fn documented<A: Parser>() -> Result<()> {
    let text = std::fs::read_to_string(workspace::root().join("docs/operations.md"))?;
    for flag in A::command().get_arguments().filter_map(clap::Arg::get_long) {
        ensure!(
            text.contains(&format!("`--{flag}")),
            "docs/operations.md lacks --{flag}"
        );
    }
    Ok(())
}
