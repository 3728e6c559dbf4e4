//! The command line of `ui`.

use clap::Args;

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
