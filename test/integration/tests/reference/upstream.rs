//! Names of the flags of upstream's controllers.

/// Flags of both controllers.
pub(crate) const COMMON: [&str; 28] = [
    "metrics-bind-address",
    "health-probe-bind-address",
    "pprof-bind-address",
    "leader-elect",
    "system-namespace",
    "tls-cert",
    "tls-key",
    "pull-cas-dir",
    "global-pull-secret",
    "feature-gates",
    "tls-profile",
    "tls-custom-version",
    "tls-custom-ciphers",
    "tls-custom-curves",
    "kubeconfig",
    "v",
    "vmodule",
    "logtostderr",
    "alsologtostderr",
    "stderrthreshold",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "log_backtrace_at",
    "add_dir_header",
    "skip_headers",
    "skip_log_headers",
    "one_output",
];

/// Flags of catalogd alone.
pub(crate) const CATALOGD: [&str; 5] = [
    "catalogs-server-addr",
    "external-address",
    "cache-dir",
    "gc-interval",
    "webhook-server-port",
];

/// Flags of operator-controller alone.
pub(crate) const OPERATOR_CONTROLLER: [&str; 2] = ["cache-path", "catalogd-cas-dir"];
