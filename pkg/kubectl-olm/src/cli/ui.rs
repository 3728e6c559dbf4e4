//! The command lines of `ui` and `ui-server`.

use std::path::PathBuf;

use clap::Args;
use olm_image::AllowedHost;
use olm_runtime::address::BindAddress;
use olm_runtime::args::{LogFormat, LogLevel};

use super::AccessArgs;

#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Port on 127.0.0.1; a free one by default.
    #[arg(short, long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Do not open a browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UiServerArgs {
    /// Address of the pages (HTTPS).
    #[arg(long, default_value = ":8443", value_name = "ADDRESS")]
    pub(crate) bind_address: BindAddress,
    /// Address of the health probes, plain HTTP; "0" for none.
    #[arg(long, default_value = ":8081", value_name = "ADDRESS")]
    pub(crate) health_probe_bind_address: BindAddress,
    /// Host name under which browsers reach the pages, without a port; may be repeated. The names of the Service, localhost and
    /// 127.0.0.1 are always permitted.
    #[arg(long = "allowed-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Serving certificate, PEM; reloaded when it changes. By default a self-managed certificate is kept in Secret olmv1-ui-own-cert.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the serving certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Host or HOST:PORT of catalogd; content of catalogs is read from no other host. By default that of catalogd's Service.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) catalogd_address: Option<String>,
    /// Directory with certificate authorities (*.crt, *.pem) to trust for catalogd, besides those of --ca-file and the system's; may be
    /// empty.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) catalogd_cas_dir: Option<PathBuf>,
    /// Host that bundles may be pulled from for plans although it is loopback, link-local or cluster-internal, as the flag of the
    /// controllers; may be repeated.
    #[arg(long = "allow-registry-host", value_name = "HOST")]
    pub(crate) allow_registry_host: Vec<AllowedHost>,
    /// Format of log lines.
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// Minimum level of log lines; `RUST_LOG` overrides it.
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}
