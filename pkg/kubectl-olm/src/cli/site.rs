//! The command line of `site`.

use std::path::PathBuf;

use clap::Args;

use super::AccessArgs;

#[derive(Debug, Args)]
pub(crate) struct SiteArgs {
    /// Directory, image, or base URL of a served catalog; may be repeated.
    #[arg(required = true, value_name = "CATALOG")]
    pub(crate) catalogs: Vec<String>,
    /// Directory of the site; created if absent, else it must be empty.
    #[arg(required = true)]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}
