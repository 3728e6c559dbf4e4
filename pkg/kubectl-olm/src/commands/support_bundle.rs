//! `support-bundle`: collects the state of the controllers into an archive without secrets.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use olm_text::counted;
use serde_json::json;

use crate::cli::controllers::SupportBundleArgs;
use crate::doctor;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::support::archive::Archive;
use crate::support::collect::{collect, versions};

/// Writes the bundle and returns its path.
pub(crate) async fn run(args: SupportBundleArgs) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let versions = versions(&cluster).await?;
    let now = Timestamp::now();
    let name = format!("olm-support-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let file = args
        .file
        .unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    let failed = |error: std::io::Error| unwritable(&file, &error);
    // Only the user may read it: redaction cannot know every secret.
    let out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .map_err(failed)?;
    let time = u64::try_from(now.as_second()).unwrap_or_default();
    let mut archive = Archive::new(BufWriter::new(out), &name, time);
    archive.object("versions.yaml", &versions).map_err(failed)?;
    match doctor::read(&cluster).await {
        Ok(facts) => {
            let findings = json!({"findings": doctor::findings(&facts)});
            archive.object("doctor.yaml", &findings).map_err(failed)?;
        }
        Err(error) => archive.missing("doctor.yaml", &olm_text::chain(&error)),
    }
    collect(&cluster, &mut archive).await.map_err(failed)?;
    let missing = archive.all_missing().to_vec();
    let out = archive.finish().map_err(failed)?;
    out.into_inner()
        .map_err(|error| unwritable(&file, error.error()))?;
    let mut text = format!("wrote {}\n", file.display());
    if !missing.is_empty() {
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "{} not collected; not-collected.txt in the bundle says why",
            counted(missing.len(), "part")
        );
    }
    text.push_str(
        "Secrets are redacted where their place is known. Look through the bundle before you share it.\n",
    );
    Ok(Report::new(json!({"file": file, "notCollected": missing}), text))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::NegativeAnswer(format!(
        "cannot write {}: {error}; choose another file with --file",
        file.display()
    ))
}
