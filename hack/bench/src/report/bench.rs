//! A measurement in progress: the environment, the measured implementation, and the rows so far.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use olm_harness::ProcessStats;

use super::plane::{PlaneTime, database};
use super::program;
use super::requests::Requests;
use super::row::{Curve, Measure, Row};
use super::scale::Scale;
use super::stage::Stage;
use super::subject::{OPERATOR_CONTROLLER, Subject};

/// Maximum wait for the end of requests.
const PATIENCE: Duration = Duration::from_mins(10);

/// Number of readings while the controller is quiet.
const READINGS: u32 = 10;

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

/// Counters at one moment: processor time and requests of operator-controller, and processor time of the control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    cpu: Option<Duration>,
    plane: PlaneTime,
    requests: Requests,
}

/// Usage of operator-controller and of the control plane for some work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Time of the work.
    pub(crate) time: Duration,
    /// Processor time, if the process is known.
    pub(crate) cpu: Option<Duration>,
    /// Processor time of the control plane.
    pub(crate) plane: PlaneTime,
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
    pub(crate) async fn add_usage(&mut self, work: &str, usage: &Usage, curve: Option<&Curve>) -> Result<()> {
        self.add_at(work, Measure::Time, usage.time.as_secs_f64(), curve);
        if let Some(cpu) = usage.cpu {
            self.add_at(work, Measure::Processor, cpu.as_secs_f64(), curve);
        }
        self.add_at(work, Measure::Requests, usage.requests.all.into(), curve);
        self.add_at(work, Measure::Writes, usage.requests.writes.into(), curve);
        self.add_plane(work, usage.plane, curve).await
    }

    /// Reads the processor time of the control plane.
    pub(crate) fn plane(&mut self) -> Result<PlaneTime> {
        PlaneTime::now(&mut self.stage.world.plane)
    }

    /// Adds the rows about the control plane. Work of this program, such as the wait for a result, is part of them.
    pub(crate) async fn add_plane(
        &mut self,
        work: &str,
        used: PlaneTime,
        curve: Option<&Curve>,
    ) -> Result<()> {
        self.add_at(work, Measure::ApiServer, used.api_server.as_secs_f64(), curve);
        self.add_at(work, Measure::Etcd, used.etcd.as_secs_f64(), curve);
        let database = database(&mut self.stage.world.plane).await?;
        self.add_at(work, Measure::Database, database, curve);
        Ok(())
    }

    /// Adds the sizes of a program of this product.
    pub(crate) fn add_program(&mut self, work: &str, name: &str) -> Result<()> {
        if let Some(path) = self.subject.program(name) {
            self.add(work, Measure::Program, program::size(&path)?);
            if let Some(size) = program::stripped_size(&path)? {
                self.add(work, Measure::Stripped, size);
            }
        }
        Ok(())
    }

    /// Adds the resident memory of operator-controller, if its process is known.
    pub(crate) fn add_resident(&mut self, work: &str, curve: Option<&Curve>) -> Result<()> {
        if let Some(process) = self.subject.operator_controller()? {
            self.add_at(work, Measure::Resident, mib(process, "VmRSS")?, curve);
        }
        Ok(())
    }

    /// Reads the counters.
    pub(crate) fn read(&mut self) -> Result<Reading> {
        let process = self.subject.operator_controller()?;
        Ok(Reading {
            at: Instant::now(),
            cpu: process.map(ProcessStats::cpu).transpose()?,
            plane: self.plane()?,
            requests: self.stage.requests.of(OPERATOR_CONTROLLER)?,
        })
    }

    /// Returns the usage since an earlier reading.
    pub(crate) fn since(&mut self, before: &Reading) -> Result<Usage> {
        let now = self.read()?;
        let cpu = now.cpu.zip(before.cpu);
        let cpu = cpu.map(|(now, before)| now.saturating_sub(before));
        Ok(Usage {
            time: now.at - before.at,
            cpu,
            plane: now.plane.since(before.plane),
            requests: now.requests.since(before.requests),
        })
    }

    /// Waits until operator-controller is idle. Returns the usage since an earlier reading. Its time ends with the last request. All
    /// processor times end when operator-controller works for the last time, which can be after that request: the wait is no work.
    pub(crate) async fn idle_since(&mut self, before: &Reading) -> Result<Usage> {
        let start = Instant::now();
        let mut end = self.since(before)?;
        let mut time = end.time;
        loop {
            tokio::time::sleep(self.scale.quiet / READINGS).await;
            let now = self.since(before)?;
            if now.requests != end.requests {
                time = now.time;
            }
            if now.requests != end.requests || now.cpu != end.cpu {
                end = now;
            }
            if now.time.saturating_sub(time) >= self.scale.quiet {
                return Ok(end.lasting(time));
            }
            ensure!(start.elapsed() < PATIENCE, "requests do not end: {now:?}");
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
