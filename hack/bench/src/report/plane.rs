//! Usage of the control plane: processor time of the API server and of etcd, and the size of etcd's database.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use olm_harness::{ControlPlane, Process, ProcessStats};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Flag of etcd with the address of its metrics.
const ADDRESS: &str = "--advertise-client-urls=http://";
/// Metric of etcd: bytes that keys and their history use.
const IN_USE: &str = "etcd_mvcc_db_total_size_in_use_in_bytes ";

/// Processor time of the control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaneTime {
    /// Processor time of kube-apiserver.
    pub(crate) api_server: Duration,
    /// Processor time of etcd.
    pub(crate) etcd: Duration,
}

impl PlaneTime {
    /// Reads the processor time since the start of the control plane.
    pub(crate) fn now(plane: &mut ControlPlane) -> Result<Self> {
        Ok(Self {
            api_server: stats(plane.apiserver())?.cpu()?,
            etcd: stats(plane.etcd())?.cpu()?,
        })
    }

    /// Returns the processor time since an earlier reading.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            api_server: self.api_server.saturating_sub(before.api_server),
            etcd: self.etcd.saturating_sub(before.etcd),
        }
    }
}

/// Returns the size of etcd's database with the history that is not compacted yet, in MB.
pub(crate) async fn database(plane: &mut ControlPlane) -> Result<f64> {
    let path = format!("/proc/{}/cmdline", stats(plane.etcd())?.pid);
    let command = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let address = command.split('\0').find_map(|flag| flag.strip_prefix(ADDRESS));
    let address = address.context("etcd has no address")?;
    let mut stream = TcpStream::connect(address)
        .await
        .context("cannot connect to etcd")?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    in_use(&text).with_context(|| format!("etcd does not tell {IN_USE}"))
}

/// Returns the size in etcd's metrics, in MB.
fn in_use(metrics: &str) -> Option<f64> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(IN_USE))?;
    value.trim().parse().ok().map(|bytes: f64| bytes / 1e6)
}

fn stats(process: &Process) -> Result<ProcessStats> {
    let pid = process.pid();
    let pid = pid.with_context(|| format!("{} does not run", process.name()))?;
    Ok(ProcessStats { pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_a_float_in_the_metrics() {
        let metrics = format!("HTTP/1.0 200 OK\n# HELP {IN_USE} x\n{IN_USE}2.5e+06\nother 1\n");
        assert_eq!(in_use(&metrics), Some(2.5));
        assert_eq!(in_use("other 1\n"), None);
    }
}
