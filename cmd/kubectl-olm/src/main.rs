//! `kubectl-olm`: answers questions about catalogs and extensions.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    olm_runtime::tls::install_provider();
    Box::pin(olm_kubectl::run(std::env::args_os())).await
}
