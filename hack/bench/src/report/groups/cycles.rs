//! Group `cycles`: all extensions are installed and deleted several times, which shows if operator-controller's memory grows.

use anyhow::Result;

use crate::report::bench::Bench;
use crate::report::packages::Kind;
use crate::report::row::{Curve, Measure};

const KIND: Kind = Kind::Five;
const CATALOG: &str = "cycles";

/// Measures the resident memory after each installation and each deletion.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let all = bench.scale.extensions;
    bench.stage.publish(CATALOG, &KIND.packages(all)).await?;
    bench.stage.create_namespaces(all).await?;
    for cycle in 1..=bench.scale.cycles {
        let before = bench.plane()?;
        let at = |name: &str| Curve {
            name: name.to_owned(),
            axis: "cycles".to_owned(),
            x: cycle,
        };
        let words = format!("cycle {cycle} of {all} {}", KIND.words());
        let time = bench.stage.install(KIND, 0..all).await?;
        let installed = at("all installed");
        bench.add_at(
            &format!("{words}, installed"),
            Measure::Time,
            time.as_secs_f64(),
            Some(&installed),
        );
        bench.idle().await?;
        bench.add_resident(&format!("{words}, installed"), Some(&installed))?;
        let time = bench.stage.delete_all().await?;
        let deleted = at("all deleted");
        bench.add_at(
            &format!("{words}, deleted"),
            Measure::Time,
            time.as_secs_f64(),
            Some(&deleted),
        );
        bench.stage.wait_for_no_pods().await?;
        let used = bench.plane()?.since(before);
        bench
            .add_plane(
                &format!("{words}, from the first to the last request"),
                used,
                Some(&at("whole cycle")),
            )
            .await?;
        bench.idle().await?;
        // An allocator may return freed pages only after some seconds.
        tokio::time::sleep(bench.scale.rest).await;
        bench.add_resident(&format!("{words}, deleted"), Some(&deleted))?;
    }
    bench.stage.world.delete(CATALOG).await
}
