//! A measurement in progress: the stage, the implementation on it, and the rows so far.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use olm_harness::ProcessStats;

use super::requests::Requests;
use super::row::{Curve, Measure, Row};
use super::scale::Scale;
use super::stage::Stage;
use super::subject::{OPERATOR_CONTROLLER, Subject};

/// Longest wait for the end of requests.
const PATIENCE: Duration = Duration::from_mins(10);

/// Means of a group: the environment, the measured implementation, and the rows so far.
pub(crate) struct Bench {
    /// Control plane and registry.
    pub(crate) stage: Stage,
    /// The controllers.
    pub(crate) subject: Subject,
    /// Sizes.
    pub(crate) scale: Scale,
    /// Figures so far.
    pub(crate) rows: Vec<Row>,
    group: &'static str,
}

/// Processor time and requests of operator-controller up to one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    cpu: Option<Duration>,
    requests: Requests,
}

/// Time, processor time and requests of operator-controller for some work.
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
    /// Returns the usage with the time of the work itself, if the work ended before the usage was read.
    pub(crate) fn lasting(self, time: Duration) -> Self {
        Self { time, ..self }
    }
}

impl Reading {
    /// Counts processor time from zero: the process is started again and begins there.
    pub(crate) fn forget_cpu(&mut self) {
        self.cpu = self.cpu.map(|_| Duration::ZERO);
    }
}

impl Bench {
    /// Returns a measurement without rows.
    pub(crate) fn new(group: &'static str, stage: Stage, subject: Subject, scale: Scale) -> Self {
        Self {
            stage,
            subject,
            scale,
            rows: Vec::new(),
            group,
        }
    }

    /// Adds a figure.
    pub(crate) fn add(&mut self, work: &str, measure: Measure, figure: f64) {
        self.add_at(work, measure, figure, None);
    }

    /// Adds a figure that is a point of a curve.
    pub(crate) fn add_at(&mut self, work: &str, measure: Measure, figure: f64, curve: Option<&Curve>) {
        self.rows.push(Row {
            group: self.group.to_owned(),
            work: work.to_owned(),
            measure,
            curve: curve.cloned(),
            samples: vec![figure],
        });
    }

    /// Adds the figures of some work of operator-controller.
    pub(crate) fn add_usage(&mut self, work: &str, usage: &Usage, curve: Option<&Curve>) {
        self.add_at(work, Measure::Time, usage.time.as_secs_f64(), curve);
        if let Some(cpu) = usage.cpu {
            self.add_at(work, Measure::Processor, cpu.as_secs_f64(), curve);
        }
        self.add_at(work, Measure::Requests, usage.requests.all.into(), curve);
        self.add_at(work, Measure::Writes, usage.requests.writes.into(), curve);
    }

    /// Adds operator-controller's resident memory, if its process is known.
    pub(crate) fn add_resident(&mut self, work: &str, curve: Option<&Curve>) -> Result<()> {
        if let Some(process) = self.subject.operator_controller()? {
            self.add_at(work, Measure::Resident, mib(process, "VmRSS")?, curve);
        }
        Ok(())
    }

    /// Reads operator-controller's counters.
    pub(crate) fn read(&mut self) -> Result<Reading> {
        let process = self.subject.operator_controller()?;
        Ok(Reading {
            at: Instant::now(),
            cpu: process.map(ProcessStats::cpu).transpose()?,
            requests: self.stage.requests.of(OPERATOR_CONTROLLER)?,
        })
    }

    /// Returns the usage of operator-controller since an earlier moment.
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

    /// Waits until operator-controller has sent no request for a while; returns what it used until its last one.
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

    /// Waits until operator-controller has sent no request for a while.
    pub(crate) async fn idle(&mut self) -> Result<Reading> {
        let before = self.read()?;
        self.idle_since(&before).await?;
        self.read()
    }
}

/// Returns a value of the kernel about a process's memory, in MiB.
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
