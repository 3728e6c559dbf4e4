//! Sizes of the measured work, all of which depend on the number of extensions.

use std::time::Duration;

/// Number of extensions with which the figures of the documentation are measured.
pub const FULL: u32 = 200;
/// Number of extensions below which a run only shows that the measurement works. Its figures mean little.
const SERIOUS: u32 = 20;

/// Sizes of the work of all groups.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// Number of extensions.
    pub(crate) extensions: u32,
    /// Number of bundles in a large package.
    pub(crate) bundles: u32,
    /// Number of entries in a large channel.
    pub(crate) entries: u32,
    /// Number of entries that each entry of a large channel skips.
    pub(crate) skips: u32,
    /// Number of CRDs of the synthetic operator.
    pub(crate) crds: u32,
    /// Size of each of these CRDs, in bytes.
    pub(crate) crd_bytes: usize,
    /// Number of small catalogs in one cluster.
    pub(crate) catalogs: u32,
    /// Number of whole catalogs in one cluster.
    pub(crate) whole_catalogs: u32,
    /// Number of clients that stay connected without a request.
    pub(crate) idle_clients: u32,
    /// Number of clients that read slowly.
    pub(crate) slow_clients: u32,
    /// Size of the catalog that slow clients read, in MB.
    pub(crate) slow_megabytes: u64,
    /// Number of times that all extensions are installed and deleted.
    pub(crate) cycles: u32,
    /// Number of changes of one revision that leave its objects unchanged.
    pub(crate) reconciles: u32,
    /// Size of the synthetic catalog, in MB.
    pub(crate) megabytes: u64,
    /// Number of times that the large catalog repeats the small one.
    pub(crate) repeats: u32,
    /// Duration of a load of reads.
    pub(crate) load: Duration,
    /// Time without a request after which operator-controller counts as idle.
    pub(crate) quiet: Duration,
    /// Time after which memory and processor have settled.
    pub(crate) settle: Duration,
    /// Time for which clients that have asked stay idle: longer than a server may keep what their requests needed, and shorter than
    /// it keeps their connections open.
    pub(crate) idle: Duration,
    /// Duration of the observation at rest.
    pub(crate) rest: Duration,
}

impl Scale {
    /// Returns the sizes for a number of extensions; [`FULL`] gives the sizes of the documentation.
    pub(crate) fn of(extensions: u32) -> Self {
        let share = |full: u32| (full * extensions.min(FULL) / FULL).max(1);
        let serious = extensions >= SERIOUS;
        let time = |serious_millis: u64, smoke_millis: u64| {
            Duration::from_millis(if serious { serious_millis } else { smoke_millis })
        };
        Self {
            extensions,
            bundles: share(5_000),
            entries: share(10_000),
            skips: share(100),
            crds: share(10),
            crd_bytes: if serious { 100_000 } else { 1_000 },
            catalogs: (extensions / 2).max(1),
            whole_catalogs: share(50),
            idle_clients: share(2_000),
            slow_clients: extensions * 5,
            slow_megabytes: share(40).into(),
            cycles: if serious { 5 } else { 2 },
            reconciles: share(20),
            megabytes: share(24).into(),
            repeats: share(15).max(2),
            load: time(5_000, 50),
            quiet: time(3_000, 100),
            settle: time(3_000, 50),
            idle: time(20_000, 50),
            rest: time(30_000, 100),
        }
    }

    /// Returns the numbers of extensions that make the points of a curve: a quarter, half and all of them.
    pub(crate) fn steps(&self) -> Vec<u32> {
        let mut steps = vec![self.extensions / 4, self.extensions / 2, self.extensions];
        steps.retain(|step| *step > 0);
        steps.dedup();
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_scale_is_that_of_the_documentation() {
        let scale = Scale::of(FULL);
        assert_eq!(
            (scale.catalogs, scale.slow_clients, scale.repeats),
            (100, 1_000, 15)
        );
        assert_eq!((scale.whole_catalogs, scale.idle_clients), (50, 2_000));
        assert_eq!((scale.bundles, scale.entries, scale.skips), (5_000, 10_000, 100));
        assert_eq!((scale.cycles, scale.reconciles, scale.megabytes), (5, 20, 24));
        assert_eq!(scale.steps(), [50, 100, 200]);
    }

    #[test]
    fn the_smallest_scale_still_does_everything() {
        let scale = Scale::of(1);
        assert_eq!(scale.steps(), [1]);
        assert!(scale.catalogs > 0 && scale.slow_clients > 0 && scale.cycles > 1 && scale.repeats > 1);
    }
}
