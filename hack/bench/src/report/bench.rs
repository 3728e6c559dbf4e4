//! A measurement in progress: the environment, the measured implementation, and the rows so far.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use olm_harness::ProcessStats;

use super::requests::Requests;
use super::row::{Curve, Measure, Row};
use super::scale::Scale;
use super::stage::Stage;
use super::subject::{OPERATOR_CONTROLLER, Subject};

/// Maximum wait for the end of requests.
const PATIENCE: Duration = Duration::from_mins(10);

/// A measurement of one group.
pub(crate) struct Bench {
    /// Control plane and registry.
    pub(crate) stage: Stage,
    /// Measured controllers.
    pub(crate) subject: Subject,
    /// Sizes of the work.
    pub(crate) scale: Scale,
    /// Measured figures so far.
    pub(crate) rows: Vec<Row>,
    group: &'static str,
}

/// Counters of operator-controller at one moment: its processor time and its requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    cpu: Option<Duration>,
    requests: Requests,
}

/// Usage of operator-controller for some work: time, processor time and requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Time of the work.
    pub(crate) time: Duration,
    /// Processor time, if the process is known.
    pub(crate) cpu: Option<Duration>,
    /// Requests to the API server.
    pub(crate) requests: Requests,
}

impl Usage {
    /// Returns the usage with this time, for work that ended before the counters were read.
    pub(crate) fn lasting(self, time: Duration) -> Self {
        Self { time, ..self }
    }
}

impl Reading {
    /// Resets the processor time to zero, because a restarted process begins there.
    pub(crate) fn forget_cpu(&mut self) {
        self.cpu = self.cpu.map(|_| Duration::ZERO);
    }
}

impl Bench {
    /// Returns a measurement of the group without rows.
    pub(crate) fn new(group: &'static str, stage: Stage, subject: Subject, scale: Scale) -> Self {
        Self {
            stage,
            subject,
            scale,
            rows: Vec::new(),
            group,
        }
    }

    /// Adds a row with one figure.
    pub(crate) fn add(&mut self, work: &str, measure: Measure, figure: f64) {
        self.add_at(work, measure, figure, None);
    }

    /// Adds a row with one figure, which may be a point of a curve.
    pub(crate) fn add_at(&mut self, work: &str, measure: Measure, figure: f64, curve: Option<&Curve>) {
        self.rows.push(Row {
            group: self.group.to_owned(),
            work: work.to_owned(),
            measure,
            curve: curve.cloned(),
            samples: vec![figure],
        });
    }

    /// Adds the rows about some work of operator-controller.
    pub(crate) fn add_usage(&mut self, work: &str, usage: &Usage, curve: Option<&Curve>) {
        self.add_at(work, Measure::Time, usage.time.as_secs_f64(), curve);
        if let Some(cpu) = usage.cpu {
            self.add_at(work, Measure::Processor, cpu.as_secs_f64(), curve);
        }
        self.add_at(work, Measure::Requests, usage.requests.all.into(), curve);
        self.add_at(work, Measure::Writes, usage.requests.writes.into(), curve);
    }

    /// Adds the resident memory of operator-controller, if its process is known.
    pub(crate) fn add_resident(&mut self, work: &str, curve: Option<&Curve>) -> Result<()> {
        if let Some(process) = self.subject.operator_controller()? {
            self.add_at(work, Measure::Resident, mib(process, "VmRSS")?, curve);
        }
        Ok(())
    }

    /// Reads the counters of operator-controller.
    pub(crate) fn read(&mut self) -> Result<Reading> {
        let process = self.subject.operator_controller()?;
        Ok(Reading {
            at: Instant::now(),
            cpu: process.map(ProcessStats::cpu).transpose()?,
            requests: self.stage.requests.of(OPERATOR_CONTROLLER)?,
        })
    }

    /// Returns the usage of operator-controller since an earlier reading.
    pub(crate) fn since(&mut self, before: &Reading) -> Result<Usage> {
        let now = self.read()?;
        let cpu = now.cpu.zip(before.cpu);
        let cpu = cpu.map(|(now, before)| now.saturating_sub(before));
        Ok(Usage {
            time: now.at - before.at,
            cpu,
            requests: now.requests.since(before.requests),
        })
    }

    /// Waits until operator-controller is idle. Returns its usage since an earlier reading, without the time of waiting.
    pub(crate) async fn idle_since(&mut self, before: &Reading) -> Result<Usage> {
        let start = Instant::now();
        let mut last = self.since(before)?;
        loop {
            tokio::time::sleep(self.scale.quiet).await;
            let now = self.since(before)?;
            if now.requests == last.requests {
                return Ok(Usage {
                    time: now.time.saturating_sub(self.scale.quiet),
                    ..now
                });
            }
            ensure!(start.elapsed() < PATIENCE, "requests do not end: {now:?}");
            last = now;
        }
    }

    /// Waits until operator-controller is idle: it has sent no request for the time `quiet` of the scale. Returns its counters.
    pub(crate) async fn idle(&mut self) -> Result<Reading> {
        let before = self.read()?;
        self.idle_since(&before).await?;
        self.read()
    }
}

/// Returns a value in `/proc/PID/status` about the memory of a process, in MiB.
pub(crate) fn mib(process: ProcessStats, key: &str) -> Result<f64> {
    Ok(f64::from(u32::try_from(process.kib(key)?).unwrap_or(u32::MAX)) / 1024.0)
}

/// Returns a point of a curve over the number of extensions.
pub(crate) fn over_extensions(name: &str, x: u32) -> Curve {
    Curve {
        name: name.to_owned(),
        axis: "extensions".to_owned(),
        x,
    }
}
