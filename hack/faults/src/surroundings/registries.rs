//! Malicious registries: each gives the answers of one attack of `test/attack` (a lie) first, and the answers of an honest
//! registry later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use olm_attack::attacks::{catalog_image, plain_layer, registries};
use olm_attack::{Case, Expect, ExtraArgs, Handler, Scale, Subject, World};
use olm_harness::stub::RecordedRequest;
use tokio::time::Instant;

use super::Figures;

/// Runs one catalog for each lie. Each catalog must report the trouble first, and be served once its registry is honest.
pub(super) async fn run(figures: &mut Figures) -> Result<()> {
    let world = World::start(ExtraArgs::default()).await?;
    let lies = Arc::new(AtomicBool::new(true));
    let mut cases = Vec::new();
    for case in registries(Scale::Full) {
        let Subject::Catalog(lie) = &case.subject else {
            continue;
        };
        let reference = world.serve(&format!("lies/{}", case.name), liar(lie.clone(), lies.clone()));
        world.apply_catalog(&case.name, &reference).await?;
        cases.push(case);
    }
    let mut told = Vec::new();
    for case in &cases {
        told.push(world.wait_for_catalog(&case.name, &case.expect).await);
    }
    lies.store(false, Ordering::SeqCst);
    let ended = Instant::now();
    for (Case { name, .. }, told) in cases.iter().zip(told) {
        let result = async {
            let told: String = told?.chars().take(300).collect();
            world.wait_for_catalog(name, &Expect::Accepted).await?;
            Ok((told, ended.elapsed()))
        };
        figures.add(&format!("registry: {name}"), result.await);
        world.remove_catalog(name).await?;
    }
    Ok(())
}

/// Returns a registry that lies while `lies` is true, and serves a small catalog otherwise.
fn liar(lie: Handler, lies: Arc<AtomicBool>) -> Handler {
    let truth = catalog_image(&plain_layer([(
        "configs/catalog.yaml",
        b"schema: olm.package\nname: a\n".as_slice(),
    )]));
    Arc::new(move |request: &RecordedRequest| {
        if lies.load(Ordering::SeqCst) {
            lie(request)
        } else {
            truth.serve(request)
        }
    })
}
