//! `kubectl-olm`: asks catalogs and the cluster what would be installed, and why.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    olm_runtime::tls::install_provider();
    Box::pin(kubectl_olm::main()).await
}
