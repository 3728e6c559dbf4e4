//! Writes the image of a static program as an OCI layout: `layout catalogd FOLDER --binary amd64=BINARY`. See
//! `cargo xtask dist`.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::Parser;
use olm_harness::controller_image::{BuildInfo, controller_image};
use olm_harness::layout::write_layout;

#[derive(Parser)]
#[command(about = "Writes the image of a static program as an OCI layout")]
struct Args {
    /// Name of the program in the image, such as catalogd.
    component: String,
    /// Folder of the layout.
    folder: PathBuf,
    /// Static binary for an architecture, ARCH=FILE; may be repeated.
    #[arg(long, required = true)]
    binary: Vec<Binary>,
    /// Version for the image's labels, and tag of the image.
    #[arg(long, default_value = "dev")]
    version: String,
    /// Commit for the image's labels.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

#[derive(Clone)]
struct Binary {
    architecture: &'static str,
    path: PathBuf,
}

impl FromStr for Binary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (architecture, path) = text.split_once('=').ok_or("is not ARCH=FILE")?;
        let architecture = ["amd64", "arm64"]
            .into_iter()
            .find(|known| *known == architecture)
            .ok_or_else(|| format!("unknown architecture {architecture}"))?;
        Ok(Self {
            architecture,
            path: path.into(),
        })
    }
}

#[expect(clippy::print_stdout, reason = "the digest is what is asked for")]
fn main() -> Result<()> {
    let args = Args::parse();
    let build = BuildInfo {
        version: args.version.clone(),
        commit: args.commit,
    };
    let variants = args
        .binary
        .iter()
        .map(|binary| {
            let image = controller_image(&args.component, &binary.path, Vec::new(), &build)?;
            Ok(image.architecture(binary.architecture))
        })
        .collect::<Result<_>>()?;
    println!("{}", write_layout(&args.folder, &args.version, variants)?);
    Ok(())
}
