//! Steps about the end of support: condition, metric, and `kubectl olm`.

use std::process::Command;

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::then;
use olm_e2e::content::support;

use super::condition;
use crate::world::OlmWorld;

const METRIC: &str = "olm_cluster_extension_support_end_timestamp_seconds";

#[then(regex = r"^ClusterExtension has no condition (\w+)$")]
async fn no_condition(world: &mut OlmWorld, type_: String) {
    let reference = format!("clusterextension/{}", world.name());
    world
        .eventually(&format!("no condition {type_}"), async || {
            let object = world.cluster().get(&reference, "").await?.context("not there")?;
            let found = condition(&object.data["status"], &type_);
            anyhow::ensure!(found.is_none(), "it is {found:?}");
            Ok(())
        })
        .await;
}

#[then(regex = r"^the metrics say that support ends after day ([+-]\d+)$")]
async fn metric(world: &mut OlmWorld, offset: String) -> anyhow::Result<()> {
    let line = format!("{METRIC}{{name=\"{}\"}} {}", world.name(), support::end(&offset)?);
    world
        .eventually(&line, async || {
            let text = world.environment.metrics.read().await?;
            let near: Vec<&str> = text.lines().filter(|line| line.starts_with(METRIC)).collect();
            anyhow::ensure!(near.contains(&line.as_str()), "{near:?}");
            Ok(())
        })
        .await;
    Ok(())
}

#[then("the metrics do not say when support ends")]
async fn no_metric(world: &mut OlmWorld) {
    let start = format!("{METRIC}{{name=\"{}\"}}", world.name());
    world
        .eventually("the metric to be gone", async || {
            let text = world.environment.metrics.read().await?;
            let found = text.lines().find(|line| line.starts_with(&start));
            anyhow::ensure!(found.is_none(), "{found:?}");
            Ok(())
        })
        .await;
}

/// Runs the real program with the administrator's rights. Each line of the step's text must be part of a line of the output.
#[then(regex = r#"^"kubectl olm ([^"]+)" says:$"#)]
async fn says(world: &mut OlmWorld, step: &Step, command: String) -> anyhow::Result<()> {
    let wanted = world.expand(step.docstring.as_deref().context("the step has no text block")?);
    let args: Vec<String> = world.expand(&command).split(' ').map(str::to_owned).collect();
    let program = olm_harness::kubectl_olm().await?;
    let kubeconfig = world.environment.control_plane.kubeconfig();
    world
        .eventually(&format!("kubectl olm {}", args.join(" ")), async || {
            let mut run = Command::new(&program);
            run.args(&args).env("KUBECONFIG", kubeconfig).env("NO_COLOR", "1");
            let output = tokio::task::spawn_blocking(move || run.output()).await??;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            for line in wanted.lines().map(str::trim).filter(|line| !line.is_empty()) {
                let said = text.lines().any(|found| found.contains(line));
                anyhow::ensure!(
                    said,
                    "`{line}` is not in\n{text}\n{}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
            Ok(())
        })
        .await;
    Ok(())
}
