//! Tests of the product on the real node of `hack/node`: `make test-node`.
//!
//! The program runs inside the node, so names of Services resolve. Its arguments are the images that `hack/image.sh`
//! printed. The last line is the total: `N passed, N failed, N skipped`.

mod api;
mod audit;
mod availability;
mod bundles;
mod cluster;
mod commands;
mod content;
mod failures;
mod life;
mod pages;
mod processes;
mod product;
mod report;
mod timing;
mod tutorial;

use std::process::ExitCode;

use anyhow::Result;
use kube::Client;

use audit::Audit;
use content::Content;
use product::{Images, Product};
use report::Report;

/// Folders whose manifests are installed one after the other.
const FOLDERS: [&str; 6] = [
    "config/default",
    "config/overlays/high-availability",
    "config/overlays/internal-registry",
    "config/overlays/private-catalogs",
    "config/overlays/ignore-service-accounts",
    "config/overlays/least-privilege",
];
/// Folders with which the web pages are checked. In the first one, catalogd answers everybody; in the second one, only readers
/// with tokens.
const WITH_PAGES: [&str; 2] = ["config/default", "config/overlays/private-catalogs"];
/// Overlays that are skipped because they need operators that the node does not have.
const WITHOUT: [(&str, &str); 2] = [
    (
        "config/overlays/cert-manager",
        "cert-manager is not installed on the node",
    ),
    ("config/overlays/openshift", "the node is no OpenShift"),
];

#[tokio::main]
#[expect(
    clippy::print_stderr,
    reason = "the cause of the end is for the person at the terminal"
)]
async fn main() -> ExitCode {
    let mut report = Report::default();
    if let Err(error) = run(&mut report).await {
        eprintln!("error: {error:#}");
        report.broken();
    }
    report.close()
}

async fn run(report: &mut Report) -> Result<()> {
    olm_harness::tls::install_provider();
    let images = Images::from_lines(std::env::args().skip(1))?;
    let content = Content::push(&images.sample_operator).await?;
    let client = Client::try_default().await?;

    let mut audit = Audit::default();
    let only = std::env::var("ONLY").unwrap_or_default();
    for folder in FOLDERS.into_iter().filter(|folder| folder.contains(&only)) {
        let product = Product::render(folder, &images)?;
        let installs = product.install(&content);
        if report
            .check(&format!("{folder} installs from nothing"), installs)
            .await
        {
            if WITH_PAGES.contains(&folder) {
                pages::check_all(folder, &images, report).await;
            }
            use_product(folder, &client, report).await;
        }
        report
            .check(&format!("{folder} is removed"), product.uninstall())
            .await;
        audit.read(folder)?;
    }
    if commands::FOLDER.contains(&only) {
        commands::check_all(&images, &content, report).await;
        audit.read(commands::FOLDER)?;
    }
    if tutorial::FILE.contains(&only) {
        tutorial::check(report).await;
        audit.read(tutorial::FILE)?;
    }
    for (overlay, why) in WITHOUT {
        report.skip(&format!("{overlay} installs from nothing"), why);
    }
    report
        .check("no request of the product was forbidden", async {
            audit.verdict()
        })
        .await;
    Ok(())
}

/// Runs the checks of an installed folder. Their order matters, because later checks upgrade the extension further.
async fn use_product(folder: &str, client: &Client, report: &mut Report) {
    match folder {
        "config/default" => {
            let title = "the operator's webhook answers with a certificate of operator-controller";
            report.check(title, life::refuses()).await;
            let title = "the operator's container runs and reconciles";
            report.check(title, life::reconciles()).await;
            report
                .check("an upgrade replaces the container", life::upgrades())
                .await;
            let title =
                "an API is served by pods, in a namespace that comes with it and stays with what others made";
            report.check(title, api::served()).await;
            for failure in failures::ALL {
                report.check(failure.title, failure.run(client)).await;
            }
            let title = "a drain of the node is not blocked by single replicas";
            let version = failures::ALL[failures::ALL.len() - 1].fixed;
            report
                .check(title, availability::drain_of_single_replicas(version))
                .await;
            let title = "a rolling update interrupts neither readers nor twenty installations";
            report.check(title, life::rolling_update()).await;
            memory(report, "pods stay small").await;
        }
        "config/overlays/high-availability" => {
            let title = "evictions take one replica at a time";
            report.check(title, availability::evictions()).await;
            let title = "a drain of the only node stops at the budgets";
            report.check(title, availability::drain_of_three_replicas()).await;
            let title = "another replica leads after a leader stops";
            report.check(title, availability::leader_stops(client)).await;
            let title = "another replica leads after a leader is killed mid-install and mid-upgrade";
            report.check(title, availability::leader_killed()).await;
            memory(report, "pods of three replicas stay small").await;
        }
        _ => {}
    }
}

/// Measures the memory of the pods. Skips this if their programs are not optimized.
async fn memory(report: &mut Report, title: &str) {
    if std::env::var_os("DEBUG_BINARIES").is_some() {
        report.skip(title, "the binaries are not optimized");
    } else {
        report.check(title, async { processes::memory() }).await;
    }
}
