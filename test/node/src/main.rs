//! Tests of the product on the real node of `hack/node`: `make test-node`.
//!
//! The program runs inside the node, so names of Services resolve. Its arguments are the images that `hack/image.sh`
//! printed. The last line is the total: `N passed, N failed, N skipped`.

mod cluster;
mod content;
mod failures;
mod life;
mod product;
mod report;

use std::process::ExitCode;

use anyhow::Result;

use content::Content;
use product::{Images, Product};
use report::Report;

/// Folders that are installed one after the other.
const FOLDERS: [&str; 6] = [
    "config/default",
    "config/overlays/high-availability",
    "config/overlays/internal-registry",
    "config/overlays/private-catalogs",
    "config/overlays/ignore-service-accounts",
    "config/overlays/least-privilege",
];
/// Overlays that need other operators, which the node has not.
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

    let only = std::env::var("ONLY").unwrap_or_default();
    for folder in FOLDERS.into_iter().filter(|folder| folder.contains(&only)) {
        let product = Product::render(folder, &images)?;
        let installs = product.install(&content);
        if report
            .check(&format!("{folder} installs from nothing"), installs)
            .await
        {
            use_product(folder, report).await;
        }
        report
            .check(&format!("{folder} is removed"), product.uninstall())
            .await;
    }
    for (overlay, why) in WITHOUT {
        report.skip(&format!("{overlay} installs from nothing"), why);
    }
    report
        .check("no request of the product was forbidden", async {
            life::nothing_forbidden()
        })
        .await;
    Ok(())
}

/// Runs the checks of an installed folder, in an order in which later ones upgrade the extension further.
async fn use_product(folder: &str, report: &mut Report) {
    match folder {
        "config/default" => {
            let title = "the operator's webhook answers with a certificate of operator-controller";
            report.check(title, async { life::refuses() }).await;
            let title = "the operator's container runs and reconciles";
            report.check(title, life::reconciles()).await;
            report
                .check("an upgrade replaces the container", life::upgrades())
                .await;
            for failure in failures::ALL {
                report.check(failure.title, failure.run()).await;
            }
            let title = "a rolling update interrupts neither readers nor twenty installations";
            report.check(title, life::rolling_update()).await;
            report.check("pods stay small", async { life::memory() }).await;
        }
        "config/overlays/high-availability" => {
            let title = "evictions take one replica at a time";
            report.check(title, life::evictions()).await;
            let title = "another replica leads after a leader is killed";
            report.check(title, life::leader_killed()).await;
        }
        _ => {}
    }
}
