//! Logging flags of Go programs: verbosity has an effect, all others are accepted and ignored.
//!
//! Manifests made for upstream pass `--v` and rarely the others; neither may prevent the start.

/// Flags of klog.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct KlogArgs {
    /// Log verbosity as in klog: 0 info, 1 to 4 debug, 5 and above trace.
    #[arg(long = "v", short = 'v', default_value_t = 0, value_name = "LEVEL")]
    pub verbosity: u8,
    #[command(flatten)]
    ignored: IgnoredFlags,
}

/// Flags without effect: log lines go to standard error, and no files are written.
#[derive(Clone, Debug, Default, clap::Args)]
struct IgnoredFlags {
    #[arg(long, hide = true)]
    vmodule: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    logtostderr: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    alsologtostderr: Option<String>,
    #[arg(long, hide = true)]
    stderrthreshold: Option<String>,
    #[arg(long = "log_dir", hide = true)]
    log_dir: Option<String>,
    #[arg(long = "log_file", hide = true)]
    log_file: Option<String>,
    #[arg(long = "log_file_max_size", hide = true)]
    log_file_max_size: Option<String>,
    #[arg(long = "log_backtrace_at", hide = true)]
    log_backtrace_at: Option<String>,
    #[arg(long = "add_dir_header", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    add_dir_header: Option<String>,
    #[arg(long = "skip_headers", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_headers: Option<String>,
    #[arg(long = "skip_log_headers", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_log_headers: Option<String>,
    #[arg(long = "one_output", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_output: Option<String>,
}

impl KlogArgs {
    /// Returns the names of the given flags that have no effect.
    #[must_use]
    pub fn without_effect(&self) -> Vec<&'static str> {
        let IgnoredFlags {
            vmodule,
            logtostderr,
            alsologtostderr,
            stderrthreshold,
            log_dir,
            log_file,
            log_file_max_size,
            log_backtrace_at,
            add_dir_header,
            skip_headers,
            skip_log_headers,
            one_output,
        } = &self.ignored;
        [
            ("vmodule", vmodule),
            ("logtostderr", logtostderr),
            ("alsologtostderr", alsologtostderr),
            ("stderrthreshold", stderrthreshold),
            ("log_dir", log_dir),
            ("log_file", log_file),
            ("log_file_max_size", log_file_max_size),
            ("log_backtrace_at", log_backtrace_at),
            ("add_dir_header", add_dir_header),
            ("skip_headers", skip_headers),
            ("skip_log_headers", skip_log_headers),
            ("one_output", one_output),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.is_some().then_some(name))
        .collect()
    }
}
