//! Fairness: measures an installation beside extensions and catalogs whose registries are slow, and shows that it does not wait
//! for them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use axum::body::Body;
use futures::{StreamExt as _, stream};
use olm_e2e::content::{Keyword, Row as BundleRow, bundle_files};
use olm_harness::stub::{Image, RecordedRequest, answer};
use olm_harness::{ImageBuilder, eventually, unique_id};

use crate::run::{PACKAGE, catalog_with};
use crate::world::ExtraArgs;
use crate::{Expect, Handler, World, attacks, serving};

/// Number of extensions with slow images, and number of such catalogs. It equals the maximum number of concurrent pulls from one
/// registry.
const SLOW_IMAGES: usize = 4;
/// Time between two bytes of a slow image.
const BYTE_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout for the start of all slow transfers.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Installation times of an extension.
#[derive(Clone, Copy, Debug)]
pub struct Fairness {
    /// Time without other work.
    pub alone: Duration,
    /// Time with concurrent extensions and catalogs whose images are slow.
    pub beside: Duration,
}

/// Lets the two workers of each controller pull four slow images. Meanwhile, a catalog and an extension of another registry must
/// be served and installed.
///
/// # Errors
/// The extension waits for a slow image, or the environment fails.
pub async fn fairness() -> Result<Fairness> {
    // Without a minimum rate, the slow transfers last for the whole measurement.
    let flags = || vec!["--concurrency=2".to_owned(), "--image-min-rate-kib=0".to_owned()];
    let world = World::start(ExtraArgs {
        catalogd: flags(),
        operator_controller: flags(),
    })
    .await?;
    let (good, id) = bundle(&world).await?;
    world.apply_catalog("good", &good).await?;
    world.wait_for_catalog("good", &Expect::Accepted).await?;
    let alone = install(&world, "alone").await?;
    world.remove_extension("alone").await?;

    let bundles = serve_slowly(&attacks::bundle_image(&[]));
    let catalogs = serve_slowly(&attacks::catalog_image(&attacks::plain_layer([])));
    for number in 0..SLOW_IMAGES {
        let bundle = world.serve(&format!("drip/bundle-{number}"), bundles.clone());
        let catalog = world.serve(
            &format!("drip/of-bundle-{number}"),
            serving(catalog_with(&bundle)),
        );
        let name = format!("dripping-{number}");
        world.apply_catalog(&name, &catalog).await?;
        world.wait_for_catalog(&name, &Expect::Accepted).await?;
        world.apply_extension(&name, &name, PACKAGE).await?;
    }
    for number in 0..SLOW_IMAGES {
        let reference = world.serve(&format!("drip/catalog-{number}"), catalogs.clone());
        world
            .apply_catalog(&format!("dripping-catalog-{number}"), &reference)
            .await?;
    }
    eventually(START_TIMEOUT, "all images drip", async || {
        let started = transfers(&world, "/drip/bundle-") + transfers(&world, "/drip/catalog-");
        ensure!(started == 2 * SLOW_IMAGES, "{started} transfers have begun");
        Ok(())
    })
    .await?;

    world.apply_catalog("beside", &good).await?;
    world.wait_for_catalog("beside", &Expect::Accepted).await?;
    let beside = install(&world, &format!("beside-{id}")).await?;
    let (bundles, catalogs) = (
        transfers(&world, "/drip/bundle-"),
        transfers(&world, "/drip/catalog-"),
    );
    ensure!(
        (bundles, catalogs) == (SLOW_IMAGES, SLOW_IMAGES),
        "an image that drips was given up meanwhile: {bundles} and {catalogs} transfers"
    );
    for number in 0..SLOW_IMAGES {
        let status = world
            .extensions()
            .get(&format!("dripping-{number}"))
            .await?
            .status;
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        let installed = conditions
            .iter()
            .any(|condition| condition.type_ == "Installed" && condition.status == "True");
        ensure!(
            !installed,
            "dripping-{number} is installed: its image did not drip"
        );
    }
    Ok(Fairness { alone, beside })
}

/// Installs an extension from the catalog `good`. Returns the duration.
async fn install(world: &World, name: &str) -> Result<Duration> {
    let started = Instant::now();
    world.apply_extension(name, "good", PACKAGE).await?;
    let installed = world.wait_for_extension(name, &Expect::Accepted).await;
    installed.with_context(|| format!("{name} is held up by registries that it does not need"))?;
    Ok(started.elapsed())
}

/// Pushes a bundle and its catalog to the registry for valid images. Returns the reference of the catalog, and the id in the
/// names of objects.
async fn bundle(world: &World) -> Result<(String, String)> {
    let id = unique_id();
    let row = BundleRow {
        package: PACKAGE.to_owned(),
        version: "1.0.0".to_owned(),
        channel: "stable".to_owned(),
        replaces: String::new(),
        contents: vec![Keyword::ConfigMap],
    };
    let files: BTreeMap<String, Vec<u8>> = bundle_files(&row, &id);
    let bundle = files.into_iter().fold(
        attacks::BUNDLE_LABELS
            .iter()
            .fold(ImageBuilder::new(), |image, (key, value)| {
                image.label(*key, *value)
            }),
        |image, (path, bytes)| image.file(path, bytes),
    );
    bundle.push(&world.registry, "fair/bundle:v1").await?;
    let host = world.registry.host();
    let catalog = ImageBuilder::new()
        .label(attacks::CONFIGS_LABEL.0, attacks::CONFIGS_LABEL.1)
        .file(
            "configs/catalog.json",
            attacks::catalog_text(&format!("{host}/fair/bundle:v1")),
        );
    catalog.push(&world.registry, "fair/catalog:v1").await?;
    Ok((format!("{host}/fair/catalog:v1"), id))
}

/// Returns a handler that serves an image's layer byte by byte.
fn serve_slowly(image: &Image) -> Handler {
    let image = image.clone();
    Arc::new(move |request: &RecordedRequest| {
        if !request.path.contains(&image.layer_path()) {
            return image.serve(request);
        }
        let bytes = stream::iter(image.layer.clone()).then(|byte| async move {
            tokio::time::sleep(BYTE_INTERVAL).await;
            Ok::<_, Infallible>(vec![byte])
        });
        answer(200, &[], Body::from_stream(bytes))
    })
}

/// Returns the number of started layer transfers, by the prefix of the repository.
fn transfers(world: &World, repository: &str) -> usize {
    let requests = world.hostile().requests_for(repository);
    // The config is requested before the layer.
    let blobs = requests.iter().filter(|request| request.path.contains("/blobs/"));
    blobs.count() / 2
}
