//! Arguments of `approve`, `pause`, `resume` and `rollback`.

use clap::Args;

use super::AccessArgs;
use super::act;

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Name of the ClusterExtension.
    pub(crate) name: String,
    /// Digest of the plan that you have seen; refused if another plan waits. Without it, the waiting plan is approved.
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    pub(crate) digest: Option<String>,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Name of the ClusterExtension.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Send the change to the API server as a dry run: rights and schema are checked, and nothing is written.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Name of the ClusterExtension.
    pub(crate) name: String,
    /// Number of the revision whose content returns, as `history` shows it; else the newest former one that was rolled out.
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) to: Option<i64>,
    /// End a rollback: the extension follows its source again.
    #[arg(long, conflicts_with = "to")]
    pub(crate) end: bool,
    /// Roll back without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) write: act::WriteArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

fn digest(text: &str) -> Result<String, String> {
    let hex = text.strip_prefix("sha256:");
    let valid = hex.is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    if valid {
        Ok(text.to_owned())
    } else {
        Err("a digest is sha256: and 64 hexadecimal digits, as in status.pendingPlan.digest".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_are_complete() {
        let hex = "0123456789abcdef".repeat(4);
        assert!(digest(&format!("sha256:{hex}")).is_ok());
        for wrong in [
            hex.clone(),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{}", hex.to_uppercase()),
            String::new(),
        ] {
            assert!(digest(&wrong).is_err(), "{wrong}");
        }
    }
}
