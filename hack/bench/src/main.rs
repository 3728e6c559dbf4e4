//! Program `olm-bench`, which the scripts of hack/bench start.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use olm_bench::{generate, kill, memory, report, soak};

#[derive(Debug, Parser)]
#[command(name = "olm-bench", about = "Catalogs of any size, load, and figures.")]
enum Command {
    /// Writes a catalog that is made up, or a real one several times over.
    Generate {
        /// Directory to write the catalog to.
        target: PathBuf,
        /// Size, in MB of JSON, of a catalog that is made up.
        #[arg(long, default_value_t = 500)]
        megabytes: u64,
        /// Size of one object that is made up, in bytes.
        #[arg(long, default_value_t = 20_000)]
        object: usize,
        /// A real catalog instead, its packages `--times` times under other names.
        #[arg(long)]
        from: Option<PathBuf>,
        /// See `--from`.
        #[arg(long, default_value_t = 1)]
        times: u32,
    },
    /// Unpacks and serves a large catalog in little memory.
    Memory(memory::Options),
    /// Measures both controllers in groups of rows, beside another implementation and an earlier run.
    Report(Box<report::Options>),
    /// Kills catalogd again and again while it unpacks.
    Kill(kill::Options),
    /// Refreshes catalogs for minutes and watches memory, disk and descriptors.
    Soak(soak::Options),
}

fn main() -> Result<()> {
    olm_harness::tls::install_provider();
    let command = Command::parse();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run(command))
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Generate {
            target,
            megabytes,
            object,
            from,
            times,
        } => match from {
            Some(source) => generate::cloned(&source, &target, times),
            None => generate::made_up(&target, megabytes * 1_000_000, object),
        },
        Command::Memory(options) => memory::run(options).await,
        Command::Report(options) => Box::pin(report::run(*options)).await.map(drop),
        Command::Kill(options) => kill::run(options).await,
        Command::Soak(options) => soak::run(options).await,
    }
}
