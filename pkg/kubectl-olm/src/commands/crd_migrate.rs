//! `crd migrate`: stores the custom resources of a CRD in its storage version.

use std::fmt::Write as _;

use olm_applier::stored::{Rewrite, RewriteLimits, SurveyError, rewrite};
use serde_json::{Value, json};

use super::common::progress;
use crate::absent;
use crate::cli::crd::MigrateArgs;
use crate::failure::Failure;
use crate::migration::{Migration, plan};
use crate::report::Report;
use crate::source::{Cluster, SourceError};
use crate::table::clean;

/// Rewrites all custom resources, then shortens `status.storedVersions`.
pub(crate) async fn run(args: MigrateArgs) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let (_, migration) = read(&cluster, &args.crd).await?;
    if migration.removed.is_empty() {
        let text = format!(
            "nothing to migrate: all custom resources are stored in {}\n",
            clean(&migration.storage)
        );
        return Ok(report(&args.crd, &migration, None, text));
    }
    let (removed, storage) = (migration.removed.join(" and "), &migration.storage);
    if args.dry_run {
        let text = format!(
            "would write all custom resources again in {}, and remove {} from status.storedVersions\n",
            clean(storage),
            clean(&removed)
        );
        return Ok(report(&args.crd, &migration, None, text));
    }
    let limits = RewriteLimits {
        time: args.timeout,
        ..RewriteLimits::default()
    };
    let Migration {
        group,
        plural,
        version,
        ..
    } = &migration;
    let told = |objects: u64| progress(&format!("{objects} custom resources are written"));
    let done = rewrite(cluster.client(), group, plural, version, &limits, told).await;
    let done = done.map_err(interrupted)?;
    if done.failed > 0 {
        return Ok(report(&args.crd, &migration, Some(&done), refused(&done)).positive(false));
    }
    // The storage version may have changed meanwhile; the resource version guards the time from here on.
    let (present, now) = read(&cluster, &args.crd).await?;
    if now.storage != migration.storage {
        return Err(Failure::NegativeAnswer(format!(
            "the storage version of {} changed from {} to {} meanwhile; run the command again",
            args.crd, migration.storage, now.storage
        )));
    }
    cluster.set_stored_versions(&args.crd, &present, storage).await?;
    let text = format!(
        "{} custom resources are stored in {}; {} is removed from status.storedVersions\n",
        done.objects,
        clean(storage),
        clean(&removed)
    );
    Ok(report(&args.crd, &migration, Some(&done), text))
}

async fn read(cluster: &Cluster, name: &str) -> Result<(Value, Migration), Failure> {
    let crd = cluster.crd(name).await?;
    let Some(crd) = crd else {
        return Err(Failure::NegativeAnswer(absent::crd(cluster, name).await));
    };
    let migration = plan(&crd)
        .map_err(|why| Failure::NegativeAnswer(format!("CustomResourceDefinition {name:?}: {why}")))?;
    Ok((crd, migration))
}

fn interrupted(error: SurveyError) -> Failure {
    progress(
        "run the command again to continue; custom resources that are stored in the version already are not written again",
    );
    SourceError::from(error).into()
}

fn refused(done: &Rewrite) -> String {
    let mut text = String::new();
    for (name, why) in &done.named {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{}: {}", clean(name), clean(why));
    }
    let at_least = if done.stopped { "at least " } else { "" };
    let _ = writeln!(
        text,
        "\n{at_least}{} custom resources cannot be written. status.storedVersions is unchanged. Correct or delete them, and \
         run the command again",
        done.failed
    );
    text
}

fn report(crd: &str, migration: &Migration, done: Option<&Rewrite>, text: String) -> Report {
    let failures = done.map(|done| {
        let named = done.named.iter();
        named
            .map(|(name, why)| json!({"name": name, "reason": why}))
            .collect::<Vec<_>>()
    });
    let value = json!({
        "crd": crd, "storageVersion": migration.storage, "removed": migration.removed,
        "customResources": done.map(|done| done.objects), "failed": done.map(|done| done.failed), "failures": failures,
    });
    Report::new(value, text)
}
