//! Inputs that seem slow. libFuzzer measures the time of an input by the clock, so a quick input can seem slow on a busy machine.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;

use super::{TIMEOUT, Target};
use crate::processors;
use crate::shell::root;

/// Start of the names that libFuzzer gives to slow inputs.
const PREFIX: &str = "slow-unit-";

/// Confirms a finding, and returns true if the finding stands. A slow input is repeated alone: an input that takes less than
/// [`TIMEOUT`] seconds of a processor is no finding, and its file is removed. `path` is relative to the repository.
pub(super) fn confirm(target: &Target, path: &str) -> anyhow::Result<bool> {
    if !is_slow(path) {
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

fn is_slow(path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::is_slow;

    #[test]
    fn only_slow_inputs_are_repeated() {
        assert!(is_slow("pkg/rollout/fuzz/artifacts/window/slow-unit-bee2"));
        assert!(!is_slow("pkg/rollout/fuzz/artifacts/window/crash-bee2"));
        assert!(!is_slow("pkg/rollout/fuzz/artifacts/slow-unit-x/timeout-bee2"));
    }
}
