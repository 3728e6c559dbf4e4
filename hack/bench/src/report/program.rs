//! Sizes of programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::kernel::megabytes;

/// Programs that remove symbols. The first one that is present and knows the program's architecture is used.
const STRIP: [&str; 2] = ["strip", "llvm-strip"];

/// Returns the size of a program, in MB.
pub(crate) fn size(program: &Path) -> Result<f64> {
    let length = fs::metadata(program).with_context(|| format!("cannot read {}", program.display()))?;
    Ok(megabytes(length.len()))
}

/// Returns the size of a program without its symbols, in MB; `None` if no tool removes them.
pub(crate) fn stripped_size(program: &Path) -> Result<Option<f64>> {
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join("stripped");
    for tool in STRIP {
        let output = Command::new(tool).arg("-o").arg(&stripped).arg(program).output();
        if output.is_ok_and(|output| output.status.success()) {
            return size(&stripped).map(Some);
        }
    }
    eprintln!("{} cannot be stripped: install binutils", program.display());
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_program_is_not_stripped() {
        let text = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(stripped_size(text.path()).unwrap(), None);
    }

    #[test]
    fn a_program_without_symbols_is_not_larger() {
        let program = std::env::current_exe().unwrap();
        let all = size(&program).unwrap();
        let stripped = stripped_size(&program).unwrap();
        assert!(
            stripped.is_none_or(|stripped| stripped > 0.0 && stripped <= all),
            "{stripped:?} of {all}"
        );
    }
}
