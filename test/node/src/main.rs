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

/// Overlays that need other operators, which the node has not.
const WITHOUT: [(&str, &str); 2] = [
    (
        "config/overlays/cert-manager",
        "cert-manager is not installed on the node",
    ),
    ("config/overlays/openshift", "the node is no OpenShift"),
];
/// Overlays other than the default and `high-availability`, which have tests of their own.
const OTHERS: [&str; 4] = [
    "config/overlays/internal-registry",
    "config/overlays/private-catalogs",
    "config/overlays/ignore-service-accounts",
    "config/overlays/least-privilege",
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

    let product = Product::render("config/default", &images)?;
    if report
        .check("config/default installs from nothing", product.install(&content))
        .await
    {
        report
            .check("the operator's container runs and reconciles", life::reconciles())
            .await;
        report
            .check("an upgrade replaces the container", life::upgrades())
            .await;
        for failure in failures::ALL {
            report.check(failure.title, failure.run()).await;
        }
        report
            .check(
                "a rolling update of the product interrupts no reader",
                life::rolling_update(),
            )
            .await;
        report.check("pods stay small", async { life::memory() }).await;
    }
    report
        .check("config/default is removed completely", product.uninstall())
        .await;

    let product = Product::render("config/overlays/high-availability", &images)?;
    if report
        .check(
            "config/overlays/high-availability installs from nothing",
            product.install(&content),
        )
        .await
    {
        report
            .check(
                "another replica leads after a leader is killed",
                life::leader_killed(),
            )
            .await;
    }
    report
        .check(
            "config/overlays/high-availability is removed",
            product.uninstall(),
        )
        .await;

    for overlay in OTHERS {
        let product = Product::render(overlay, &images)?;
        report
            .check(
                &format!("{overlay} installs from nothing"),
                product.install(&content),
            )
            .await;
        report
            .check(&format!("{overlay} is removed"), product.uninstall())
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
