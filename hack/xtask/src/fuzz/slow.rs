//! Inputs that seem slow. libFuzzer measures the time of an input by the clock, so a quick input can seem slow on a busy machine.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;

use super::{TIMEOUT, Target};
use crate::processors;
use crate::shell::root;

/// Start of the names that libFuzzer gives to slow inputs.
const SLOW: &str = "slow-unit-";
/// Start of the names of inputs that take more than [`TIMEOUT`] seconds by the clock. Such an input ends the run.
const TOO_SLOW: &str = "timeout-";

/// Confirms a finding, and returns true if the finding stands. A slow input is repeated alone: an input that takes less than
/// [`TIMEOUT`] seconds of a processor is no finding, and its file is removed. `path` is relative to the repository.
pub(super) fn confirm(target: &Target, path: &str) -> anyhow::Result<bool> {
    if !starts_with(path, SLOW) && !is_timeout(path) {
        return Ok(true);
    }
    let file = root().join(path);
    let mut child = target
        .cargo_fuzz("run")
        .args([&target.name, &file.display().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot repeat {path}"))?;
    let taken = processors::of_all(&child);
    let ended = child.wait()?;
    if !ended.success() || taken.is_none_or(|taken| taken.as_secs() >= u64::from(TIMEOUT)) {
        return Ok(true);
    }
    fs::remove_file(&file).with_context(|| format!("cannot remove {path}"))?;
    Ok(false)
}

/// Returns true if the input has ended its run by its time.
pub(super) fn is_timeout(path: &str) -> bool {
    starts_with(path, TOO_SLOW)
}

/// Returns true if the name of the file at `path` starts with `prefix`.
fn starts_with(path: &str, prefix: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(prefix)
}

#[cfg(test)]
mod tests {
    use super::is_timeout;

    #[test]
    fn the_name_of_a_file_tells_a_timeout() {
        assert!(is_timeout("pkg/rollout/fuzz/artifacts/window/timeout-bee2"));
        assert!(!is_timeout("pkg/rollout/fuzz/artifacts/window/crash-bee2"));
        assert!(!is_timeout("pkg/rollout/fuzz/artifacts/timeout-x/slow-unit-bee2"));
    }
}
