//! Descriptions of metrics: the source of registrations and of docs/reference/metrics.md.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, MetricEncoder},
    metrics::MetricType,
    registry::{Metric, Registry},
};

/// Description of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Name as registered; scrapes see [`Description::exported`].
    pub name: &'static str,
    /// Type of the metric.
    pub kind: MetricType,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Meaning, without a period at the end.
    pub help: &'static str,
}

impl Description {
    /// Describes a counter.
    #[must_use]
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self::new(name, MetricType::Counter, labels, help)
    }

    /// Describes a gauge.
    #[must_use]
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self::new(name, MetricType::Gauge, labels, help)
    }

    /// Describes a histogram.
    #[must_use]
    pub const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self::new(name, MetricType::Histogram, labels, help)
    }

    /// Describes an info metric, whose value is always 1.
    #[must_use]
    pub const fn info(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self::new(name, MetricType::Info, labels, help)
    }

    const fn new(
        name: &'static str,
        kind: MetricType,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            labels,
            help,
        }
    }

    /// Returns the name in a scrape, to which the type adds its suffix.
    #[must_use]
    pub fn exported(&self) -> String {
        let suffix = match self.kind {
            MetricType::Counter => "_total",
            MetricType::Info => "_info",
            _ => "",
        };
        format!("{}{suffix}", self.name)
    }

    /// Registers the metric under this description.
    pub fn register(&self, registry: &mut Registry, metric: impl Metric) {
        registry.register(self.name, self.help, metric);
    }

    /// Starts the metric in a collector.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn encode<'a>(
        &self,
        encoder: &'a mut DescriptorEncoder<'_>,
    ) -> Result<MetricEncoder<'a>, fmt::Error> {
        encoder.encode_descriptor(self.name, self.help, None, self.kind)
    }
}
