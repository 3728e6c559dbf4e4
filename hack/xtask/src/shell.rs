//! Helpers that run other programs, most of them in the root of the workspace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Returns the root of the workspace, wherever the chore was called from.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    let dir = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(dir)
}

/// Returns the cargo that runs this chore.
fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns a command for the cargo that runs this chore, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(program());
    command.current_dir(root());
    command
}

/// Returns a git command in `folder`. It never uses a repository around the folder, because git ignores patches of files outside
/// of its repository.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder);
    if let Some(around) = folder.parent() {
        command.env("GIT_CEILING_DIRECTORIES", around);
    }
    command
}

/// Returns the output of git in the root of the workspace.
pub(crate) fn git_output(args: &[&str]) -> anyhow::Result<String> {
    output(git(&root()).args(args))
}

/// Runs `command` to its end and passes its output on. An exit status other than 0 is an error that names the command.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs `command` and returns its standard output. An exit status other than 0 is an error with its standard error.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = show(command);
    let output = command
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not print UTF-8"))
}

/// Returns a command that builds a binary of the workspace and runs it in the folder of the chore's caller, because `args` may have
/// relative paths.
pub(crate) fn cargo_run(package: &str, bin: &str, args: &[String]) -> Command {
    let mut command = Command::new(program());
    command
        .args(["run", "--quiet", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .args(["--package", package, "--bin", bin, "--"])
        .args(args)
        .env("CARGO_TARGET_DIR", target_dir());
    command
}

/// Returns the command line for messages, with the bare name of the program.
fn show(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let mut shown = name.to_string_lossy().into_owned();
    for arg in command.get_args() {
        shown.push(' ');
        shown.push_str(&arg.to_string_lossy());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_runs_in_the_folder_of_the_caller() {
        let command = cargo_run("olm-integration", "vectors", &["some/dir".to_owned()]);
        assert_eq!(command.get_current_dir(), None);
        let manifest = root().join("Cargo.toml");
        assert!(
            command.get_args().any(|arg| arg == manifest.as_os_str()),
            "{command:?}"
        );
    }
}
