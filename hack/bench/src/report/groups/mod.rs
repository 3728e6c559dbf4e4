//! Groups of rows that are measured together, with one module for each of them.

mod catalogs;
mod cycles;
mod deletion;
mod idle_clients;
mod large_packages;
mod many;
mod operators;
mod replicas;
mod single;
mod slow_clients;

use anyhow::Result;

use super::bench::Bench;
use super::options::Options;
use super::packages::Kind;
use crate::figures;

/// A group of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Group {
    /// One extension, tiny or of five objects: installation, drift, upgrade, reconciles without changes.
    Single,
    /// Many tiny extensions of one package.
    Tiny,
    /// Many extensions of five objects with a Deployment, each of its own package.
    Five,
    /// All of them installed and deleted several times: memory.
    Cycles,
    /// Deletion, beside a bare client that deletes the same objects.
    Deletion,
    /// Packages that are far larger than real ones.
    LargePackages,
    /// Real operators, beside a bare client that writes the same objects.
    Operators,
    /// Many small catalogs, and fewer whole ones.
    Catalogs,
    /// catalogd by one, two and four replicas.
    Replicas,
    /// Many idle clients, and many slow clients of a whole catalog.
    SlowClients,
    /// catalogd with a small and a large catalog: unpacking, and reads under load.
    Catalogd,
}

impl Group {
    /// All groups, in the order of the report.
    pub const ALL: [Self; 11] = [
        Self::Single,
        Self::Tiny,
        Self::Five,
        Self::Cycles,
        Self::Deletion,
        Self::LargePackages,
        Self::Operators,
        Self::Catalogs,
        Self::Replicas,
        Self::SlowClients,
        Self::Catalogd,
    ];

    /// Returns the name of the group in options, tables and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Tiny => "tiny",
            Self::Five => "five",
            Self::Cycles => "cycles",
            Self::Deletion => "deletion",
            Self::LargePackages => "large-packages",
            Self::Operators => "operators",
            Self::Catalogs => "catalogs",
            Self::Replicas => "replicas",
            Self::SlowClients => "slow-clients",
            Self::Catalogd => "catalogd",
        }
    }

    /// Measures all rows of the group.
    pub(crate) async fn run(self, bench: &mut Bench, options: &Options) -> Result<()> {
        match self {
            Self::Single => single::run(bench).await,
            Self::Tiny => many::run(bench, Kind::Tiny, options.catalogs).await,
            Self::Five => many::run(bench, Kind::Five, options.catalogs).await,
            Self::Cycles => cycles::run(bench).await,
            Self::Deletion => deletion::run(bench).await,
            Self::LargePackages => large_packages::run(bench).await,
            Self::Operators => operators::run(bench, &options.operator).await,
            Self::Catalogs => catalogs::run(bench, &options.catalogd).await,
            Self::Replicas => replicas::run(bench).await,
            Self::SlowClients => slow_clients::run(bench).await,
            Self::Catalogd => figures::run(bench, &options.catalogd).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn options_and_reports_use_the_same_names() {
        let names: Vec<&str> = Group::ALL.into_iter().map(Group::name).collect();
        let options = Group::value_variants()
            .iter()
            .map(|group| group.to_possible_value().unwrap().get_name().to_owned());
        assert_eq!(options.collect::<Vec<_>>(), names);
    }
}
