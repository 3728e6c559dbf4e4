//! Facts that all files of a release share: version, commit, time and URLs.

use anyhow::Context as _;
use jiff::Timestamp;

use super::Args;
use crate::shell::git_output;

/// Facts that all files of a release share.
pub(super) struct Release {
    /// Version, without a leading `v`.
    pub(super) version: String,
    pub(super) commit: String,
    /// `clean`, or `dirty` if the checkout has uncommitted changes.
    pub(super) tree_state: &'static str,
    /// Time of the release, in seconds since the Unix epoch: `SOURCE_DATE_EPOCH`, or else the time of the commit.
    pub(super) epoch: u64,
    /// Registry and path of the images, without the name of the component.
    pub(super) image_prefix: String,
    pub(super) download_url: Option<String>,
}

impl Release {
    pub(super) fn new(args: &Args) -> anyhow::Result<Self> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => git_output(&["log", "-1", "--format=%ct"])?,
        };
        let epoch = epoch
            .trim()
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH {:?} is no number of seconds", epoch.trim()))?;
        let clean = git_output(&["status", "--porcelain"])?.is_empty();
        Ok(Self {
            version: args.version.trim_start_matches('v').to_owned(),
            commit: git_output(&["rev-parse", "HEAD"])?.trim().to_owned(),
            tree_state: if clean { "clean" } else { "dirty" },
            epoch,
            image_prefix: args.image_prefix.trim_end_matches('/').to_owned(),
            download_url: args
                .download_url
                .as_deref()
                .map(|url| url.trim_end_matches('/').to_owned()),
        })
    }

    /// Returns the time of the release in RFC 3339.
    pub(super) fn date(&self) -> anyhow::Result<String> {
        let seconds = i64::try_from(self.epoch).context("the time of the release is too large")?;
        let time = Timestamp::from_second(seconds).context("the time of the release is out of range")?;
        Ok(time.to_string())
    }
}
