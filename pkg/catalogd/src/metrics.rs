//! Prometheus metrics of content, beside upstream's request histogram.
//!
//! Labels come from closed sets, never from catalog names or error texts. Ages and sizes are read at each scrape.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use olm_image::Cause;
use olm_runtime::metrics::Description;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};

use crate::storage::{Encoding, Store};

/// Directory of unpacked images below the cache directory.
pub(crate) const UNPACK: &str = "unpack";
/// Maximum number of entries visited to sum up the folder of unpacked images. Keeps a scrape cheap while a huge
/// image is being unpacked.
const MAX_ENTRIES: u32 = 20_000;

/// Upper bounds in durations: from a cached digest to a large catalog over a slow connection.
const BUCKETS: [f64; 12] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

const UNPACK_SECONDS: Description = Description::histogram(
    "catalogd_unpack_seconds",
    &["step"],
    "Duration of a step of a content update: `resolve`, `pull` (transfer), `store` (with the decompression of the layers)",
);
const PULLS: Description = Description::counter("catalogd_pulls", &["result"], "Content updates by result");
const DAMAGED: Description = Description::counter(
    "catalogd_content_damaged",
    &[],
    "Stored contents that were found damaged and discarded",
);
const SERVED: Description = Description::gauge(
    "catalogd_catalogs_served",
    &[],
    "Catalogs whose content is served",
);
const AGE: Description = Description::gauge(
    "catalogd_content_age_seconds_max",
    &[],
    "Age of the content that was unpacked longest ago",
);
const CONTENT_BYTES: Description = Description::gauge(
    "catalogd_content_bytes",
    &["form"],
    "Bytes on disk of served content: `plain`, `gzip`, `zstd`, `index`",
);
const UNPACK_BYTES: Description = Description::gauge(
    "catalogd_unpack_bytes",
    &[],
    "Bytes on disk of images that are being unpacked or were left behind; counts at most 20,000 files",
);
const AVAILABLE: Description = Description::gauge(
    "catalogd_cache_available_bytes",
    &[],
    "Free space on the disk of the cache",
);
const DESCRIPTIONS: [Description; 8] = [
    UNPACK_SECONDS,
    PULLS,
    DAMAGED,
    SERVED,
    AGE,
    CONTENT_BYTES,
    UNPACK_BYTES,
    AVAILABLE,
];

/// Returns the descriptions of catalogd's own metrics.
pub fn descriptions() -> impl Iterator<Item = Description> {
    crate::server::DESCRIPTIONS.into_iter().chain(DESCRIPTIONS)
}

/// Step of a content update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullStep {
    /// Resolving the reference to a digest.
    Resolve,
    /// Transfer of the image's layers.
    Pull,
    /// Decompressing the layers, reading the catalog and storing it in all encodings.
    Store,
}

impl PullStep {
    fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Pull => "pull",
            Self::Store => "store",
        }
    }
}

/// Result of a content update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullResult {
    /// The reference resolves to the stored image.
    Unchanged,
    /// New content was stored.
    Stored,
    /// The image cannot be pulled or holds no catalog.
    Image(Cause),
    /// The catalog in the image is invalid.
    Content,
    /// The disk failed.
    Disk,
}

impl PullResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Stored => "stored",
            Self::Image(cause) => cause.as_str(),
            Self::Content => "content",
            Self::Disk => "disk",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

type StepDurations = Family<StepLabels, Histogram, fn() -> Histogram>;

/// Counters of the controller. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    durations: StepDurations,
    results: Family<ResultLabels, Counter>,
    damaged: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            durations: StepDurations::new_with_constructor(|| Histogram::new(BUCKETS)),
            results: Family::default(),
            damaged: Counter::default(),
        }
    }
}

impl Metrics {
    /// Registers the counters and the collector of `store`. `cache` is the cache directory.
    pub fn register(registry: &mut Registry, store: Arc<Store>, cache: &Path) -> Self {
        let metrics = Self::default();
        UNPACK_SECONDS.register(registry, metrics.durations.clone());
        PULLS.register(registry, metrics.results.clone());
        DAMAGED.register(registry, metrics.damaged.clone());
        registry.register_collector(Box::new(ContentCollector {
            store,
            cache: cache.to_owned(),
        }));
        metrics
    }

    pub(crate) fn observe(&self, step: PullStep, time: Duration) {
        let labels = StepLabels { step: step.as_str() };
        self.durations.get_or_create(&labels).observe(time.as_secs_f64());
    }

    pub(crate) fn count_damage(&self) {
        self.damaged.inc();
    }

    pub(crate) fn count_pull(&self, result: PullResult) {
        let labels = ResultLabels {
            result: result.as_str(),
        };
        self.results.get_or_create(&labels).inc();
    }
}

/// Collector of figures about stored content.
#[derive(Debug)]
struct ContentCollector {
    store: Arc<Store>,
    cache: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FormLabels {
    form: &'static str,
}

impl Collector for ContentCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let served = self.store.serving();
        ConstGauge::new(served.len() as u64).encode(SERVED.encode(&mut encoder)?)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = served
            .values()
            .map(|generation| {
                let unpacked = u64::try_from(generation.manifest().origin.unpacked_at).unwrap_or_default();
                now.as_secs().saturating_sub(unpacked)
            })
            .max();
        ConstGauge::new(oldest.unwrap_or_default()).encode(AGE.encode(&mut encoder)?)?;
        let mut sizes = CONTENT_BYTES.encode(&mut encoder)?;
        for (form, encoding) in [
            ("plain", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("zstd", Encoding::Zstd),
        ] {
            let bytes: u64 = served.values().map(|generation| generation.size(encoding)).sum();
            ConstGauge::new(bytes).encode(sizes.encode_family(&FormLabels { form })?)?;
        }
        let index: u64 = served.values().map(|generation| generation.index_size()).sum();
        ConstGauge::new(index).encode(sizes.encode_family(&FormLabels { form: "index" })?)?;
        let mut left = MAX_ENTRIES;
        ConstGauge::new(size(&self.cache.join(UNPACK), &mut left))
            .encode(UNPACK_BYTES.encode(&mut encoder)?)?;
        if let Ok(disk) = rustix::fs::statvfs(&self.cache) {
            let available = disk.f_bavail.saturating_mul(disk.f_frsize);
            ConstGauge::new(available).encode(AVAILABLE.encode(&mut encoder)?)?;
        }
        Ok(())
    }
}

/// Sums the sizes of files below a folder, visiting at most `left` entries. Unreadable or vanished entries do not
/// count.
fn size(folder: &Path, left: &mut u32) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let mut bytes = 0_u64;
    for entry in entries.flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        match entry.metadata() {
            Ok(found) if found.is_dir() => bytes = bytes.saturating_add(size(&entry.path(), left)),
            Ok(found) => bytes = bytes.saturating_add(found.len()),
            Err(_) => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Origin, ValidCatalogName};

    #[test]
    fn text_of_all_metrics() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path().join("catalogs")).unwrap());
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, store.clone(), folder.path());
        metrics.observe(PullStep::Pull, Duration::from_millis(300));
        metrics.count_damage();
        for result in [
            PullResult::Unchanged,
            PullResult::Image(Cause::Dns),
            PullResult::Image(Cause::RateLimited),
        ] {
            metrics.count_pull(result);
        }
        let unpacked = folder.path().join(UNPACK).join("c/sha256:aa");
        fs::create_dir_all(&unpacked).unwrap();
        fs::write(unpacked.join("file"), [0; 77]).unwrap();
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
        let origin = Origin {
            requested: "registry.example/c:v1".to_owned(),
            resolved: "registry.example/c@sha256:aa".to_owned(),
            unpacked_at: 1,
            verified: None,
        };
        let name = ValidCatalogName::new("c").unwrap();
        store.store(&name, &source, origin, 1, &|| false).unwrap();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "catalogd_unpack_seconds_bucket{le=\"0.5\",step=\"pull\"} 1",
            "catalogd_pulls_total{result=\"unchanged\"} 1",
            "catalogd_pulls_total{result=\"dns\"} 1",
            "catalogd_pulls_total{result=\"rate_limited\"} 1",
            "catalogd_content_damaged_total 1",
            "catalogd_unpack_bytes 77",
            "catalogd_cache_available_bytes ",
            "catalogd_content_bytes{form=\"index\"} ",
            "catalogd_catalogs_served 1",
            "catalogd_content_bytes{form=\"plain\"} 15",
            "catalogd_content_age_seconds_max 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
