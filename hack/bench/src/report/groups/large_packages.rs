//! Group `large-packages`: installations from packages far larger than real ones, and the memory that operator-controller needs
//! for them.

use anyhow::Result;
use serde_json::{Value, json};

use crate::generate::Words;
use crate::report::bench::{Bench, mib};
use crate::report::packages::{Kind, Package, channel, package_meta, push_bundles, push_metas};
use crate::report::row::Measure;
use crate::report::scale::Scale;
use crate::report::stage::is_installed;

/// Number of the newest bundle in each package. Only this bundle is pulled.
const NEWEST: u32 = 9_999;
/// Version of the newest bundle.
const VERSIONS: &[&str] = &["9999.0.0"];
/// Size of a bundle's description in a package of many bundles, in bytes.
const DESCRIPTION: usize = 2_000;

/// A large package.
#[derive(Clone, Copy, Debug)]
struct Large {
    /// Name of the package. It is short, because every skipped name in an entry contains it.
    name: &'static str,
    /// Number of bundles, which is also the number of entries in the channel.
    bundles: u32,
    /// Number of preceding entries that each entry skips.
    skips: u32,
    /// Size of each bundle's description, in bytes.
    description: usize,
}

/// Measures all rows about large packages.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    for package in packages(&bench.scale) {
        measure(bench, package).await?;
    }
    Ok(())
}

fn packages(scale: &Scale) -> [Large; 2] {
    [
        Large {
            name: "bundles",
            bundles: scale.bundles,
            skips: 0,
            description: DESCRIPTION,
        },
        Large {
            name: "skips",
            bundles: scale.entries,
            skips: scale.skips,
            description: 0,
        },
    ]
}

/// Measures the installation of the newest version of a package.
async fn measure(bench: &mut Bench, package: Large) -> Result<()> {
    let Large { name, .. } = package;
    let newest = Package {
        name: name.to_owned(),
        kind: Kind::Tiny,
        versions: VERSIONS,
    };
    let registry = &bench.stage.world.registry;
    push_bundles(registry, &[newest]).await?;
    let metas = package.metas(&registry.host());
    let image = push_metas(registry, &metas, &format!("bench/catalog-{name}:1")).await?;
    drop(metas);
    bench.stage.world.apply(name, &image, None).await?;
    bench.stage.world.serving(name, &image).await?;
    bench.stage.create_namespace(name).await?;
    let words = package.words();
    let before = bench.idle().await?;
    if let Some(process) = bench.subject.operator_controller()? {
        process.reset_peak()?;
    }
    let catalog = json!({"packageName": name});
    let time = bench.stage.install_one(name, &catalog, is_installed).await?;
    let usage = bench.idle_since(&before).await?.lasting(time);
    let work = format!("extension of {words}, create to Installed");
    bench.add_usage(&work, &usage, None).await?;
    if let Some(process) = bench.subject.operator_controller()? {
        bench.add(&work, Measure::Peak, mib(process, "VmHWM")?);
    }
    bench.add_resident(&format!("extension of {words} at rest"), None)?;
    // An allocator may return freed pages only after some seconds.
    let later = bench.scale.rest * 2;
    tokio::time::sleep(later).await;
    let work = format!("extension of {words}, {} s later", later.as_secs_f64());
    bench.add_resident(&work, None)?;
    bench.stage.delete_all().await?;
    bench.stage.world.delete(name).await
}

impl Large {
    fn words(&self) -> String {
        let Self { bundles, skips, .. } = self;
        match skips {
            0 => format!("a package of {bundles} bundles"),
            _ => format!("a channel of {bundles} entries with {skips} skips each"),
        }
    }

    /// Returns the objects of a catalog about this package.
    fn metas(&self, host: &str) -> Vec<Value> {
        let name = self.name;
        let bundle = |number: u32| format!("{name}{number}");
        let first = (NEWEST + 1).saturating_sub(self.bundles);
        let mut words = Words::default();
        let mut metas = vec![package_meta(name)];
        let mut entries = Vec::new();
        for number in first..=NEWEST {
            let mut entry = json!({"name": bundle(number)});
            if number > first {
                entry["replaces"] = json!(bundle(number - 1));
            }
            if self.skips > 0 {
                let skipped = first.max(number.saturating_sub(self.skips))..number;
                entry["skips"] = skipped.map(bundle).collect();
            }
            entries.push(entry);
            let version = format!("{number}.0.0");
            let mut properties =
                vec![json!({"type": "olm.package", "value": {"packageName": name, "version": version}})];
            if self.description > 0 {
                let description = words.text(self.description);
                properties.push(json!({"type": "olm.csv.metadata", "value": {"description": description}}));
            }
            metas.push(
                json!({"schema": "olm.bundle", "package": name, "name": bundle(number),
                "image": format!("{host}/bench/{name}:{version}"), "properties": properties}),
            );
        }
        metas.push(channel(name, &entries));
        metas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_skips_those_before_it() {
        let package = Large {
            name: "p",
            bundles: 3,
            skips: 2,
            description: 0,
        };
        let metas = package.metas("host");
        assert_eq!(metas.len(), 5);
        let entries = &metas.last().unwrap()["entries"];
        let last = json!({"name": "p9999", "replaces": "p9998", "skips": ["p9997", "p9998"]});
        assert_eq!(entries[2], last);
        assert_eq!(entries[0], json!({"name": "p9997", "skips": []}));
        assert_eq!(metas[3]["image"], "host/bench/p:9999.0.0");
    }
}
