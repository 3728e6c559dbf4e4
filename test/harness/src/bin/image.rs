//! Pushes the image of a static program: `image catalogd BINARY HOST/NAME:TAG`. See hack/image.sh.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use oci_client::client::{ClientConfig, ClientProtocol};
use olm_harness::controller_image::{BuildInfo, controller_image};
use olm_harness::host_libraries::host_libraries;

#[derive(Parser)]
#[command(about = "Pushes the image of a static program")]
struct Args {
    /// Name of the program in the image, such as catalogd.
    component: String,
    /// Static binary of the program.
    binary: PathBuf,
    /// Target: HOST[:PORT]/NAME:TAG.
    image: oci_client::Reference,
    /// Further path of the program in the image, such as bin/sh; repeatable.
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Version for the image's labels.
    #[arg(long, default_value = "dev")]
    version: String,
    /// Commit for the image's labels.
    #[arg(long, default_value = "unknown")]
    commit: String,
    /// Add the shared libraries of this machine, for a binary that is not static. Only for tests.
    #[arg(long)]
    host_libraries: bool,
    /// Push by plain HTTP.
    #[arg(long)]
    plain_http: bool,
    /// USER:PASSWORD of the registry; preferably from the environment.
    #[arg(long, env = "REGISTRY_AUTH", hide_env_values = true)]
    auth: Option<String>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "what was pushed is what is asked for")]
async fn main() -> Result<()> {
    olm_harness::tls::install_provider();
    let args = Args::parse();
    let build = BuildInfo {
        version: args.version,
        commit: args.commit,
    };
    let libraries = if args.host_libraries {
        host_libraries(&args.binary)?
    } else {
        Vec::new()
    };
    let mut image = controller_image(&args.component, &args.binary, libraries, &build)?;
    for path in &args.paths {
        image = image.executable(path, std::fs::read(&args.binary)?);
    }
    if let Some(auth) = &args.auth {
        let (user, password) = auth
            .split_once(':')
            .context("the registry's auth is USER:PASSWORD")?;
        image = image.auth(user, password);
    }
    let client = oci_client::Client::new(ClientConfig {
        protocol: if args.plain_http {
            ClientProtocol::Http
        } else {
            ClientProtocol::Https
        },
        ..ClientConfig::default()
    });
    let digest = image.push_with(&client, &args.image).await?;
    println!("{}/{}@{digest}", args.image.registry(), args.image.repository());
    Ok(())
}
