//! `ui`: web pages about the cluster on loopback, with the user's own rights.

use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use super::common::{progress, warn};
use crate::cli::ui::UiArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::ui::{Door, Key, KeyDoor, Reader, Server};

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
    let _lead = if args.no_open { None } else { open(&address) };
    let door = KeyDoor::new(key, port, Reader::of_user(cluster, args.access));
    Server::new(Door::Key(door))
        .serve(listener)
        .await
        .map_err(|error| unable(port, &error))?;
    Ok(Report::new(json!({"address": address}), String::new()))
}

fn unable(port: u16, error: &io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot listen on port {port} of 127.0.0.1, name another one with --port: {error}"
    ))
}

/// Opens the address by the program of the desktop, as a process of its own. Its arguments are no secret on this machine, so they name
/// a file that only the user can read, which leads to the address; it has to stay while the browser starts.
fn open(address: &str) -> Option<NamedTempFile> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    match lead(address).and_then(|file| {
        Command::new(program)
            .arg(file.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(file)
    }) {
        Ok(file) => Some(file),
        Err(error) => {
            warn(&format!("no browser was opened: {program}: {error}"));
            None
        }
    }
}

/// Writes a page that leads to the address, for the user alone.
fn lead(address: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix("kubectl-olm-")
        .suffix(".html")
        .tempfile()?;
    write!(
        file,
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"><title>kubectl olm ui</title>"
    )?;
    file.flush()?;
    Ok(file)
}
