//! The report of a run as documents: Markdown, and one plot for each group.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::plot::panels;
use super::record::Record;
use super::svg::svg;
use super::table::table;

/// Returns the report in Markdown. It refers to the plots as `GROUP.svg` in the same folder.
pub fn markdown(record: &Record, baseline: Option<&Record>) -> String {
    let mut out = String::from("# Benchmarks\n\n");
    let _ = writeln!(
        out,
        "Commit {} of {}, build {}, {} extensions, {} for each figure.\n\nMachine: {}.",
        record.commit,
        record.date,
        record.build,
        record.extensions,
        if record.times == 1 {
            "one run".to_owned()
        } else {
            format!("median of {} runs", record.times)
        },
        record.machine
    );
    if let Some(beside) = &record.beside {
        let _ = writeln!(out, "\nBeside: `{}`.", beside.command);
    }
    if let Some(baseline) = baseline {
        let _ = writeln!(
            out,
            "\nBaseline: commit {} of {}.",
            baseline.commit, baseline.date
        );
        for difference in record.differences(baseline) {
            let _ = writeln!(out, "\n**The baseline cannot be compared: {difference}.**");
        }
    }
    for failure in &record.failures {
        let _ = writeln!(
            out,
            "\n**Not all rows were measured: {}.**",
            failure.replace('\n', " ")
        );
    }
    let columns = record.columns(baseline);
    for group in columns.groups() {
        let table = table(columns, group);
        let _ = write!(out, "\n## {group}\n\n{table}\n![{group}]({group}.svg)\n");
    }
    out.push_str("\n## Other load\n\nProcessors that other processes, or other guests of the host, used on average; load averages of a minute.\n\n");
    out.push_str("| group | of | length | other processes | other guests | load before | load after |\n|---|---|---|---|---|---|---|\n");
    for load in &record.load {
        let _ = writeln!(out, "{load}");
    }
    out
}

/// Creates the folder, and writes `report.md`, `report.json` and a plot for each group to it.
///
/// # Errors
/// The folder is not writable.
pub fn write(record: &Record, baseline: Option<&Record>, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    file("report.md", &markdown(record, baseline))?;
    record.save(&folder.join("report.json"))?;
    let columns = record.columns(baseline);
    for group in columns.groups() {
        file(&format!("{group}.svg"), &svg(group, &panels(columns, group)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::record;

    #[test]
    fn a_report_says_what_it_compares() {
        let baseline = Record {
            commit: "abcdef".to_owned(),
            extensions: 5,
            ..record(1.0)
        };
        let failed = Record {
            failures: vec!["group x: an\nerror".to_owned()],
            ..record(2.0)
        };
        let text = markdown(&failed, Some(&baseline));
        for part in [
            "Commit 0123456789ab",
            "Baseline: commit abcdef",
            "**The baseline cannot be compared: extensions 200, the baseline has 5.**",
            "**Not all rows were measured: group x: an error.**",
            "## group\n\n| work | measure | here | baseline | change |",
            "| install | time | 2.00 s | 1.00 s | +100 % (worse) |",
            "![group](group.svg)",
            "## Other load",
        ] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
    }

    #[test]
    fn every_group_has_its_plot() {
        let dir = tempfile::tempdir().unwrap();
        write(&record(2.0), None, dir.path()).unwrap();
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["group.svg", "report.json", "report.md"]);
    }
}
