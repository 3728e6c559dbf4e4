//! What catalogd tells Prometheus about content, beside upstream's histogram of requests.
//!
//! Labels come from closed sets: no names of catalogs, no texts of errors. Ages and sizes are read when they are
//! asked for.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};

use crate::storage::{Encoding, Store};

/// Upper bounds in seconds: from a digest in the cache to a large catalog over a slow line.
const BUCKETS: [f64; 12] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

/// A part of bringing content up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Asking what a reference names.
    Resolve,
    /// Transferring the image and unpacking its layers.
    Pull,
    /// Reading the catalog and storing all its forms.
    Store,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Pull => "pull",
            Self::Store => "store",
        }
    }
}

/// How a try to bring content up to date ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullResult {
    /// What is stored is what the reference names.
    Unchanged,
    /// New content is served.
    Stored,
    /// The image cannot be had or is no catalog; only another reference helps.
    Blocked,
    /// The registry, or the way to it, failed.
    Registry,
    /// The catalog in the image is not valid.
    Content,
    /// The disk refused.
    Disk,
}

impl PullResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Stored => "stored",
            Self::Blocked => "blocked",
            Self::Registry => "registry",
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

type Seconds = Family<StepLabels, Histogram, fn() -> Histogram>;

/// Counts of the controller. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    seconds: Seconds,
    results: Family<ResultLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            seconds: Seconds::new_with_constructor(|| Histogram::new(BUCKETS)),
            results: Family::default(),
        }
    }
}

impl Metrics {
    /// Registers the counts, and the figures of what `store` holds.
    pub fn register(registry: &mut Registry, store: Arc<Store>) -> Self {
        let metrics = Self::default();
        registry.register(
            "catalogd_unpack_seconds",
            "Time of each step of bringing a catalog's content up to date",
            metrics.seconds.clone(),
        );
        registry.register(
            "catalogd_pulls",
            "Tries to bring a catalog's content up to date, by how they ended",
            metrics.results.clone(),
        );
        registry.register_collector(Box::new(Stored(store)));
        metrics
    }

    pub(crate) fn took(&self, step: Step, time: Duration) {
        let labels = StepLabels { step: step.as_str() };
        self.seconds.get_or_create(&labels).observe(time.as_secs_f64());
    }

    pub(crate) fn ended(&self, result: PullResult) {
        let labels = ResultLabels {
            result: result.as_str(),
        };
        self.results.get_or_create(&labels).inc();
    }
}

/// What is stored, seen when it is asked for.
#[derive(Debug)]
struct Stored(Arc<Store>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FormLabels {
    form: &'static str,
}

impl Collector for Stored {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let served = self.0.serving();
        ConstGauge::new(served.len() as u64).encode(encoder.encode_descriptor(
            "catalogd_catalogs_served",
            "Catalogs whose content is served",
            None,
            MetricType::Gauge,
        )?)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = served
            .values()
            .map(|generation| {
                let unpacked = u64::try_from(generation.manifest().origin.unpacked_at).unwrap_or_default();
                now.as_secs().saturating_sub(unpacked)
            })
            .max();
        ConstGauge::new(oldest.unwrap_or_default()).encode(encoder.encode_descriptor(
            "catalogd_content_age_seconds_max",
            "Age of the content that was unpacked longest ago",
            None,
            MetricType::Gauge,
        )?)?;
        let mut sizes = encoder.encode_descriptor(
            "catalogd_content_bytes",
            "Bytes on disk of what is served, by form",
            None,
            MetricType::Gauge,
        )?;
        for (form, encoding) in [
            ("plain", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("zstd", Encoding::Zstd),
        ] {
            let bytes: u64 = served.values().map(|generation| generation.size(encoding)).sum();
            ConstGauge::new(bytes).encode(sizes.encode_family(&FormLabels { form })?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{CatalogName, Origin};

    #[test]
    fn text_of_all_metrics() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path().join("catalogs")).unwrap());
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, store.clone());
        metrics.took(Step::Pull, Duration::from_millis(300));
        metrics.ended(PullResult::Registry);
        let source = folder.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
        let origin = Origin {
            requested: "registry.example/c:v1".to_owned(),
            resolved: "registry.example/c@sha256:aa".to_owned(),
            unpacked_at: 1,
        };
        let name = CatalogName::new("c").unwrap();
        store.store(&name, &source, origin, 1, &|| false).unwrap();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "catalogd_unpack_seconds_bucket{le=\"0.5\",step=\"pull\"} 1",
            "catalogd_pulls_total{result=\"registry\"} 1",
            "catalogd_catalogs_served 1",
            "catalogd_content_bytes{form=\"plain\"} 15",
            "catalogd_content_age_seconds_max 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
