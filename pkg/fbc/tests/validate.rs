//! Validation: one small catalog for each rule, places, sound catalogs, large graphs.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and read files"
)]

use olm_fbc::{Finding, Limits, LocatedMeta, Meta, Rule, Severity, Validator, decode_located, validate};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn located(text: &str) -> Vec<(u64, Meta)> {
    decode_located(text.as_bytes(), &Limits::default())
        .collect::<Result<_, _>>()
        .expect("a readable file")
}

fn findings(file: &str, text: &str) -> Vec<Finding> {
    let metas = located(text);
    validate(metas.iter().map(|(line, meta)| LocatedMeta {
        file,
        line: *line,
        meta,
    }))
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/testdata/fbc/validate")
}

/// Needs no file of its own: it would be of 256 KiB.
const WITHOUT_FIXTURE: [Rule; 1] = [Rule::IconSize];

#[test]
fn every_rule_finds_its_fixture() {
    let mut table = String::new();
    for rule in Rule::ALL.iter().filter(|rule| !WITHOUT_FIXTURE.contains(rule)) {
        let file = format!("{rule}.jsonl");
        let text = std::fs::read_to_string(fixtures().join(&file)).expect("a fixture for each rule");
        let found = findings(&file, &text);
        assert!(
            found.iter().any(|finding| finding.rule == *rule),
            "{rule}: {found:#?}"
        );
        for Finding {
            file,
            line,
            package,
            severity,
            rule,
            message,
            hint,
        } in found
        {
            assert!(!hint.is_empty() && !message.is_empty());
            assert_eq!(severity, rule.severity());
            writeln!(table, "{file}:{line}: [{package}] {severity} {rule}: {message}").expect("a string");
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_sound_catalog_has_no_findings() {
    let text = std::fs::read_to_string(fixtures().join("sound.jsonl")).expect("testdata");
    assert_eq!(findings("sound.jsonl", &text), []);
}

#[test]
fn identifiers_are_unique() {
    let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn metas_know_their_lines() {
    let lines = |text: &str| {
        located(text)
            .into_iter()
            .map(|(line, _)| line)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        lines("{\"a\":1}{\"b\":2}\n\n{\n\"c\":3\n}\n {\"d\":4}"),
        [1, 1, 3, 6]
    );
    assert_eq!(lines("\n\n  {\"a\":1}\n"), [3]);
    assert_eq!(lines("a: 1\nb: 2\n---\nc: 3\n---\n\n# why\nd: 4\n"), [1, 4, 8]);
    assert_eq!(lines("# head\n---\n---\na: 1\n--- # next\nb: 2"), [4, 6]);
    assert_eq!(lines("\n\n  a: 1\n  b: 2\n---\nc: 3"), [3, 6]);
    let mut decoder = olm_fbc::decode(&b"{\"a\":1}\n\n{\"a\" 1}"[..], &Limits::default());
    assert!(decoder.next().is_some_and(|meta| meta.is_ok()));
    assert!(decoder.next().is_some_and(|meta| meta.is_err()));
    assert_eq!(decoder.line(), 3);
}

#[test]
fn large_icons_are_remarked_on() {
    let data = "A".repeat(400_000);
    let text = format!(
        "{{\"schema\":\"olm.package\",\"name\":\"a\",\"icon\":{{\"base64data\":\"{data}\",\"mediatype\":\"image/png\"}}}}"
    );
    assert!(
        findings("a.json", &text)
            .iter()
            .any(|finding| finding.rule == Rule::IconSize)
    );
}

#[test]
fn large_graphs_cost_their_size() {
    let mut entries = String::new();
    for at in 1..=10_000_u32 {
        let skips: Vec<_> = (at.saturating_sub(100)..at)
            .map(|skip| format!("\"b{skip}\""))
            .collect();
        let comma = if at > 1 { "," } else { "" };
        let _ = write!(
            entries,
            "{comma}{{\"name\":\"b{at}\",\"replaces\":\"b{}\",\"skips\":[{}]}}",
            at - 1,
            skips.join(",")
        );
    }
    let text =
        format!("{{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":[{entries}]}}");
    let metas = located(&text);
    let start = Instant::now();
    let mut validator = Validator::default();
    validator.add(LocatedMeta {
        file: "a",
        line: 1,
        meta: &metas[0].1,
    });
    let found = validator.finish();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(
        !found
            .iter()
            .any(|finding| finding.rule == Rule::ChannelHeadMultiple)
    );
}

/// Counts by rule what is found in every catalog under `root`.
fn survey(root: &Path) -> (BTreeMap<&'static str, usize>, Vec<Finding>) {
    let mut counts = BTreeMap::new();
    let mut errors = Vec::new();
    let folders = std::fs::read_dir(root).expect("a folder of catalogs");
    for folder in folders.map(|folder| folder.expect("an entry").path()) {
        let mut validator = Validator::default();
        for file in std::fs::read_dir(folder)
            .expect("a catalog")
            .map(|file| file.expect("an entry").path())
        {
            let name = file.display().to_string();
            let reader = std::fs::File::open(&file).expect("a file");
            for meta in decode_located(reader, &Limits::default()) {
                let (line, meta) = meta.expect("a sound meta");
                validator.add(LocatedMeta {
                    file: &name,
                    line,
                    meta: &meta,
                });
            }
        }
        for finding in validator.finish() {
            *counts.entry(finding.rule.as_str()).or_default() += 1;
            if finding.severity == Severity::Error {
                errors.push(finding);
            }
        }
    }
    (counts, errors)
}

#[test]
fn real_catalogs_have_the_faults_they_are_known_for() {
    let Some(vectors) = std::env::var_os("OLM_VECTORS") else {
        writeln!(
            std::io::stderr(),
            "SKIPPED: OLM_VECTORS is not set, so no real catalog was validated"
        )
        .expect("standard error");
        return;
    };
    let catalogs = Path::new(&vectors).join("catalogs");
    let stats = catalogs.join("stats.json");
    if ![stats.as_path(), &catalogs.join("medium"), &catalogs.join("rest")]
        .iter()
        .all(|path| path.exists())
    {
        let line = format!("SKIPPED: no catalogs with stats.json in {}\n", catalogs.display());
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
        return;
    }
    let (mut total, mut heads, mut others) = (BTreeMap::new(), Vec::new(), Vec::new());
    for part in ["medium", "rest"] {
        let (counts, errors) = survey(&catalogs.join(part));
        for (rule, count) in counts {
            *total.entry(rule).or_insert(0) += count;
        }
        for finding in errors {
            if finding.rule == Rule::ChannelHeadMultiple {
                let channel = finding.message.split('"').nth(1).unwrap_or_default();
                heads.push(format!("{}/{channel}", finding.package));
            } else {
                others.push(format!("{} {}", finding.package, finding.rule));
            }
        }
    }
    eprintln!("findings by rule: {total:#?}");
    let text = std::fs::read_to_string(stats).expect("stats.json");
    let stats: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let known = stats["multiHeadChannels"].as_object().expect("an object");
    heads.sort();
    assert_eq!(heads, known.keys().cloned().collect::<Vec<_>>());
    // No other check of catalog tools: they have built these catalogs.
    others.sort();
    let expected = [
        "alibaba-cloud-csi-operator entry-stranded",
        "hive-operator deprecation-unknown",
        "hive-operator deprecation-unknown",
    ];
    assert_eq!(others, expected);
}
