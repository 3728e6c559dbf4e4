//! Processes of the product, as the node sees them in /proc, and their memory.

use std::fs;

use anyhow::{Context as _, Result, ensure};

/// Programs of the product.
pub(crate) const PROGRAMS: [&str; 2] = ["catalogd", "operator-controller"];
/// Maximum resident memory of an idle process, in KiB. Real values are far below; see docs/benchmarks.md.
const MEMORY_LIMIT_KIB: u64 = 64 * 1024;

/// A process of the product.
pub(crate) struct Running {
    pub(crate) id: u32,
    /// Name of the pod.
    pub(crate) host: String,
    /// Resident memory, in KiB.
    resident_kib: u64,
}

/// Returns the processes of a program.
pub(crate) fn processes(program: &str) -> Result<Vec<Running>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
            continue;
        };
        // A process may end between the reads.
        let Ok(executable) = fs::read_link(path.join("exe")) else {
            continue;
        };
        if executable.file_name().is_none_or(|name| name != program) {
            continue;
        }
        let (Ok(environment), Ok(status)) = (
            fs::read(path.join("environ")),
            fs::read_to_string(path.join("status")),
        ) else {
            continue;
        };
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let host = environment
            .split('\0')
            .find_map(|line| line.strip_prefix("HOSTNAME="));
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        found.push(Running {
            id,
            host: host.unwrap_or_default().to_owned(),
            resident_kib: resident
                .and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok())
                .context("no VmRSS")?,
        });
    }
    Ok(found)
}

/// Measures the resident memory of the process in each pod. Fails if a process exceeds the limit.
pub(crate) fn memory() -> Result<String> {
    let mut remark = Vec::new();
    for program in PROGRAMS {
        let running = processes(program)?;
        ensure!(!running.is_empty(), "no {program} runs");
        for process in running {
            let resident = process.resident_kib;
            ensure!(resident < MEMORY_LIMIT_KIB, "{program} uses {resident} KiB");
            remark.push(format!("{program} {} MiB", resident / 1024));
        }
    }
    Ok(remark.join(", "))
}
