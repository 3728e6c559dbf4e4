//! Decodes and validates the catalog files named on the command line and says what that cost. With `--decode`
//! nothing is validated. `hack/bench/walk-memory.sh` reads its output.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for the command line: it reads files, measures time and prints"
)]

use olm_fbc::{Limits, LocatedMeta, Validator, decode_located};
use std::fs::File;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let only_decode = files.first().is_some_and(|first| first == "--decode");
    if only_decode {
        files.remove(0);
    }
    let mut validator = Validator::default();
    let (mut metas, mut bytes, mut largest) = (0_u64, 0_u64, 0);
    let start = Instant::now();
    for file in &files {
        let reader = File::open(file)?;
        bytes += reader.metadata()?.len();
        for meta in decode_located(reader, &Limits::default()) {
            let (line, meta) = meta?;
            metas += 1;
            largest = largest.max(meta.blob.len());
            if !only_decode {
                validator.add(LocatedMeta {
                    file,
                    line,
                    meta: &meta,
                });
            }
        }
    }
    let findings = validator.finish().len();
    let millis = u64::try_from(start.elapsed().as_millis())?.max(1);
    println!(
        "{} files, {metas} metas, {bytes} bytes, {} ms, {} MB/s, largest meta {largest} bytes, {findings} findings",
        files.len(),
        millis,
        bytes / 1000 / millis
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
        println!("{}", peak.unwrap_or("VmHWM: unknown"));
    }
    Ok(())
}
