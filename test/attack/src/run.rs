//! Performs the attacks of all classes, checks after each class that other work continues, and checks the memory of the
//! controllers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use olm_harness::{
    ports::Port,
    stub::{Image, answer},
};

pub(crate) use crate::attacks::PACKAGE;
use crate::report::mib;
use crate::world::ExtraArgs;
use crate::{Case, Expect, Peaks, Report, Row, Scale, Selection, Subject, World, attacks, clients};

/// Memory limits of each controller, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// Limit of the peak during any attack, and during all of them concurrently.
    pub peak: u64,
    /// Limit of the resident memory a minute after the last attack.
    pub after: u64,
}

impl MemoryLimits {
    /// Limits of the full scale: 128 MB and 40 MB.
    pub const FULL: Self = Self {
        peak: 128_000_000 / 1024,
        after: 40_000_000 / 1024,
    };
}

/// Runs the selected attacks of a scale. With `limits`, checks the memory of both controllers.
///
/// # Errors
/// The environment fails, or other work is affected. Outcomes of attacks and exceeded limits are part of the report.
pub async fn run(scale: Scale, limits: Option<MemoryLimits>, selection: &Selection) -> Result<Report> {
    let metrics = Port::reserve()?;
    let extra = ExtraArgs {
        catalogd: clients::arguments(&metrics.address()),
        ..ExtraArgs::default()
    };
    let mut world = World::start(extra).await?;
    let mut report = Report::default();
    for (class, cases) in selection.select(attacks::all(scale)?) {
        let concurrent = match scale {
            Scale::Small => cases.len().max(1),
            Scale::Full => 1,
        };
        for chunk in cases.chunks(concurrent) {
            for row in perform(&mut world, class, chunk).await? {
                // The run takes long, so each row is printed at once.
                eprintln!("{row}");
                report.add(row);
            }
        }
        check_bystander(&mut world, class).await?;
    }
    for row in clients::perform(&mut world, &metrics.address(), scale, selection).await? {
        report.add(row);
    }
    check_bystander(&mut world, "clients").await?;
    if let Some(limits) = limits {
        check_limits(&mut world, &mut report, limits, selection).await?;
    }
    Ok(report)
}

/// Performs the cases concurrently, and deletes their objects.
async fn perform(world: &mut World, class: &'static str, cases: &[Case]) -> Result<Vec<Row>> {
    world.reset_peaks()?;
    let started = Instant::now();
    for case in cases {
        create(world, class, case)
            .await
            .with_context(|| format!("{class}/{}", case.name))?;
    }
    let mut rows = Vec::new();
    for case in cases {
        let name = object_name(class, case);
        let outcome = match &case.subject {
            Subject::Catalog(_) => world.wait_for_catalog(&name, &case.expect).await,
            Subject::Bundle(_) | Subject::Package(_) => world.wait_for_extension(&name, &case.expect).await,
        };
        rows.push(Row {
            class,
            name: case.name.clone(),
            outcome: outcome.map_err(|error| format!("{error:#}")),
            duration: started.elapsed(),
            peaks: Peaks::default(),
        });
    }
    let peaks = world.memory("VmHWM")?;
    for row in &mut rows {
        row.peaks = peaks;
    }
    for case in cases {
        let name = object_name(class, case);
        if !matches!(case.subject, Subject::Catalog(_)) {
            world.remove_extension(&name).await?;
        }
        world.remove_catalog(&name).await?;
    }
    Ok(rows)
}

/// Creates the objects of a case: a catalog, and an extension unless the subject is a catalog. If the subject is a bundle, the
/// catalog is valid.
async fn create(world: &World, class: &str, case: &Case) -> Result<()> {
    let name = object_name(class, case);
    let repository = format!("{class}/{}", case.name);
    match &case.subject {
        Subject::Catalog(handler) => {
            let reference = world.serve(&repository, handler.clone());
            world.apply_catalog(&name, &reference).await
        }
        Subject::Bundle(handler) => {
            let bundle = world.serve(&format!("{repository}/bundle"), handler.clone());
            let catalog = catalog_with(&bundle);
            let reference = world.serve(&repository, Arc::new(move |request| catalog.serve(request)));
            world.apply_catalog(&name, &reference).await?;
            world.apply_extension(&name, &name, PACKAGE).await
        }
        Subject::Package(handler) => {
            let reference = world.serve(&repository, handler.clone());
            world.apply_catalog(&name, &reference).await?;
            world.apply_extension(&name, &name, PACKAGE).await
        }
    }
}

fn object_name(class: &str, case: &Case) -> String {
    format!("{class}-{}", case.name)
}

/// Returns the image of a valid catalog with one package, whose only bundle has the image `bundle`.
pub(crate) fn catalog_with(bundle: &str) -> Image {
    let text = attacks::catalog_text(bundle);
    attacks::catalog_image(&attacks::plain_layer([("configs/catalog.json", text.as_bytes())]))
}

/// Checks that a catalog created after a class of attacks is served, and that both controllers run.
async fn check_bystander(world: &mut World, class: &str) -> Result<()> {
    let name = format!("bystander-{class}");
    let image = catalog_with("registry.invalid/never:v1");
    let reference = world.serve(
        &name,
        Arc::new(move |request| match request.path.as_str() {
            "/v2/" => answer(200, &[], ""),
            _ => image.serve(request),
        }),
    );
    world.apply_catalog(&name, &reference).await?;
    let served = world.wait_for_catalog(&name, &Expect::Accepted).await;
    served.with_context(|| format!("a bystander of the attacks {class} suffers"))?;
    world.remove_catalog(&name).await?;
    world.catalogd.controller().check()?;
    world.operator_controller.controller().check()
}

/// Performs all attacks of each class concurrently, waits a minute, and checks the memory limits.
async fn check_limits(
    world: &mut World,
    report: &mut Report,
    limits: MemoryLimits,
    selection: &Selection,
) -> Result<()> {
    let all = selection.select(attacks::all(Scale::Full)?);
    world.reset_peaks()?;
    let started = Instant::now();
    for (class, cases) in &all {
        for row in perform_concurrently(world, class, cases).await? {
            eprintln!("{row}");
            report.add(row);
        }
    }
    report.add(Row {
        class: "all",
        name: "at once".to_owned(),
        outcome: Ok("each class side by side".to_owned()),
        duration: started.elapsed(),
        peaks: world.memory("VmHWM")?,
    });
    tokio::time::sleep(Duration::from_mins(1)).await;
    let after = world.memory("VmRSS")?;
    report.add(Row {
        class: "all",
        name: "a minute later".to_owned(),
        outcome: Ok("resident memory".to_owned()),
        duration: started.elapsed(),
        peaks: after,
    });
    let peaks = report.peaks();
    for (what, found, limit) in [
        ("peak of catalogd", peaks.catalogd, limits.peak),
        (
            "peak of operator-controller",
            peaks.operator_controller,
            limits.peak,
        ),
        ("catalogd a minute later", after.catalogd, limits.after),
        (
            "operator-controller a minute later",
            after.operator_controller,
            limits.after,
        ),
    ] {
        if found > limit {
            report.add(Row {
                class: "all",
                name: what.to_owned(),
                outcome: Err(format!("{:.1} MiB, more than {:.1} MiB", mib(found), mib(limit))),
                duration: Duration::ZERO,
                peaks: Peaks::default(),
            });
        }
    }
    Ok(())
}

/// Performs the cases concurrently. Returns a row for each case that does not end as expected.
async fn perform_concurrently(world: &mut World, class: &'static str, cases: &[Case]) -> Result<Vec<Row>> {
    let started = Instant::now();
    for case in cases {
        create(world, class, case).await?;
    }
    let mut failed = Vec::new();
    for case in cases {
        let name = object_name(class, case);
        let outcome = match &case.subject {
            Subject::Catalog(_) => world.wait_for_catalog(&name, &case.expect).await,
            Subject::Bundle(_) | Subject::Package(_) => world.wait_for_extension(&name, &case.expect).await,
        };
        if let Err(error) = outcome {
            failed.push(Row {
                class,
                name: format!("{}, at once", case.name),
                outcome: Err(format!("{error:#}")),
                duration: started.elapsed(),
                peaks: Peaks::default(),
            });
        }
        if !matches!(case.subject, Subject::Catalog(_)) {
            world.remove_extension(&name).await?;
        }
        world.remove_catalog(&name).await?;
    }
    Ok(failed)
}
