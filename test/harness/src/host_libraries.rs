//! Shared libraries of this machine, for images of binaries that are not static.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A library's absolute path and content.
pub type Library = (String, Vec<u8>);

/// Returns the dynamic loader of a binary and the libraries that the loader finds, by `ldd`.
///
/// # Errors
/// `ldd` fails, or a library is missing or unreadable.
pub fn host_libraries(binary: &Path) -> Result<Vec<Library>> {
    let said = Command::new("ldd")
        .arg(binary)
        .output()
        .context("cannot run ldd")?;
    ensure!(
        said.status.success(),
        "ldd cannot read {}: {}",
        binary.display(),
        String::from_utf8_lossy(&said.stderr).trim()
    );
    let said = String::from_utf8(said.stdout)?;
    paths(&said)
        .map(|path| {
            let content = std::fs::read(path).with_context(|| format!("cannot read {path}"))?;
            Ok((path.to_owned(), content))
        })
        .collect()
}

/// Returns the paths in the output of `ldd`: `NAME => PATH (ADDRESS)`, and `PATH (ADDRESS)` for the loader. The kernel's own
/// library has no path.
fn paths(said: &str) -> impl Iterator<Item = &str> {
    said.lines().filter_map(|line| {
        let path = line.split_once(" => ").map_or(line, |(_, path)| path).trim();
        let path = path.split_once(" (").map_or(path, |(path, _)| path);
        path.starts_with('/').then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_and_libraries_are_found() {
        let said = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so (0x3)\n";
        assert_eq!(
            paths(said).collect::<Vec<_>>(),
            ["/lib/libc.so.6", "/lib64/ld.so"]
        );
        let libraries = host_libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(libraries.iter().any(|(path, _)| path.contains("libc.so")));
        assert!(
            libraries
                .iter()
                .all(|(_, content)| content.starts_with(b"\x7fELF"))
        );
    }
}
