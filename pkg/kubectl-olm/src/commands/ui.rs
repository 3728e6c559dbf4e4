//! `ui`: web pages about the cluster on loopback, with the user's own rights.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use serde_json::json;
use tokio::net::TcpListener;

use super::common::{progress, warn};
use crate::cli::ui::UiArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::ui::{Key, Server};

/// Serves the pages until it is interrupted.
pub(crate) async fn run(args: UiArgs) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    // The first page shall not be the first to tell that there is no cluster.
    let version = cluster.kube_version().await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
    let listener = listener.map_err(|error| unable(args.port, &error))?;
    let port = listener
        .local_addr()
        .map_err(|error| unable(args.port, &error))?
        .port();
    let key = Key::new();
    let address = format!("http://127.0.0.1:{port}/?key={}", key.text());
    progress(&format!("pages about Kubernetes {version} on {address}"));
    progress("whoever has the address reads the cluster with your rights; interrupt with Ctrl-C");
    if !args.no_open {
        open(&address);
    }
    Server::new(cluster, args.access, key, port)
        .serve(listener)
        .await
        .map_err(|error| unable(port, &error))?;
    Ok(Report::new(json!({"address": address}), String::new()))
}

fn unable(port: u16, error: &std::io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot listen on port {port} of 127.0.0.1, name another one with --port: {error}"
    ))
}

/// Opens the address by the program of the desktop, as a process of its own.
fn open(address: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let opened = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        warn(&format!("no browser was opened: {program}: {error}"));
    }
}
