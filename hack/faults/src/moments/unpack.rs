//! Kills of catalogd while it stores the content of a catalog.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{ImageBuilder, tls};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::figures::{Case, Outcome};
use super::{Killed, Options};
use crate::{Judge, Run, World, kinds};

/// Number of packages in a content: enough that its storage takes a noticeable part of the time.
const PACKAGES: u32 = 3000;
/// Secret with the certificate authority that catalogd creates.
const CERTIFICATE: &str = "catalogd-service-own-cert";
/// Pause between two checks of the catalog.
const PAUSE: Duration = Duration::from_millis(100);

/// Content of a catalog.
struct Content {
    /// Reference of the catalog's image.
    image: String,
    /// Content as catalogd serves it; empty before it was read once.
    served: String,
}

/// Two contents for a catalog, and the shortest time without a kill until catalogd serves one of them.
pub(super) struct Contents {
    first: Content,
    second: Content,
    undisturbed: Duration,
}

impl Contents {
    /// Pushes both contents, and measures how long catalogd takes to serve each of them.
    pub(super) async fn measure(world: &World, options: &Options) -> Result<Self> {
        let client = world.client();
        let mut contents = [push(world, 1).await?, push(world, 2).await?];
        let mut undisturbed = Duration::MAX;
        for content in &mut contents {
            let begin = Instant::now();
            point(&client, "unpack-measured", &content.image).await?;
            wait_until_serving(&client, "unpack-measured", &content.image, options.limit()).await?;
            undisturbed = undisturbed.min(begin.elapsed());
            content.served = read(&client, world, "unpack-measured").await?;
        }
        let [first, second] = contents;
        ensure!(first.served != second.served, "both contents are equal");
        Ok(Self {
            first,
            second,
            undisturbed,
        })
    }
}

/// Kills catalogd while it stores the first content of a catalog or, if `number` is odd, the content that replaces it. Returns
/// true if catalogd serves the content in the end.
pub(super) async fn kill_in(
    world: &mut World,
    judge: &mut Judge,
    (run, options): (&Run, &Options),
    contents: &Contents,
    number: u64,
    case: &mut Case,
) -> Result<bool> {
    let (client, seed) = (world.client(), run.seed);
    let Contents { first, second, .. } = contents;
    let name = format!("unpack-{seed:x}-{number}");
    let replaces = number % 2 == 1;
    if replaces {
        point(&client, &name, &first.image).await?;
        wait_until_serving(&client, &name, &first.image, options.limit()).await?;
    }
    let moment = Killed::Unpack.moment(seed, number, contents.undisturbed);
    point(&client, &name, &second.image).await?;
    sleep(moment).await;
    world.catalogd.kill()?;
    let before_end = !is_serving(&client, &name, &second.image).await?;
    let begin = Instant::now();
    world.catalogd.spawn()?;
    let old = replaces.then_some(first);
    let converged = settle(&client, world, &name, old, second, options.limit()).await;
    let kept = converged.is_ok();
    let outcome = Outcome {
        moment,
        before_end,
        converged: converged
            .map(|()| begin.elapsed())
            .map_err(|error| format!("{error:#}")),
    };
    case.add(Killed::Unpack, number, seed, &outcome);
    kinds::CATALOG
        .all(&client)
        .delete(&name, &DeleteParams::default())
        .await?;
    case.add_violations(judge.violations(&format!("{seed}, catalog {number}")).await);
    Ok(kept)
}

/// Waits until the new content is served. Fails if catalogd answers with anything but the complete old or new content before.
async fn settle(
    client: &Client,
    world: &mut World,
    name: &str,
    old: Option<&Content>,
    new: &Content,
    limit: Duration,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        world.catalogd.check()?;
        if let Ok(answer) = read(client, world, name).await {
            if answer == new.served && is_serving(client, name, &new.image).await? {
                return Ok(());
            }
            let known = answer == new.served || old.is_some_and(|old| old.served == answer);
            ensure!(
                known,
                "{} bytes are served that are of neither content",
                answer.len()
            );
        }
        if begin.elapsed() > limit {
            bail!("the content is not served within {limit:?}");
        }
        sleep(PAUSE).await;
    }
}

/// Pushes a catalog's image whose bundles have this version.
async fn push(world: &World, version: u32) -> Result<Content> {
    let mut text = String::new();
    for number in 0..PACKAGES {
        let package = format!("package-{number}");
        let image = format!("registry.example/{package}:{version}");
        let metas = [
            json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": [{"name": format!("{package}.v{version}")}]}),
            json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"), "image": image,
                "properties": [{"type": "olm.package", "value": {"packageName": package, "version": format!("{version}.0.0")}}]}),
        ];
        for meta in metas {
            writeln!(text, "{meta}")?;
        }
    }
    let repository = format!("faults/unpack:v{version}");
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", text)
        .push(&world.registry, &repository)
        .await?;
    Ok(Content {
        // catalogd knows the registry only by the address of its proxy.
        image: format!("{}/{repository}", world.registry_tunnel.address()),
        served: String::new(),
    })
}

/// Creates a ClusterCatalog, or changes the image of an existing one.
async fn point(client: &Client, name: &str, image: &str) -> Result<()> {
    let body = json!({"apiVersion": kinds::CATALOG.api_version(), "kind": kinds::CATALOG.name(), "metadata": {"name": name},
        "spec": {"source": {"type": "Image", "image": {"ref": image}}}});
    let params = PatchParams::apply("faults-user").force();
    let applied = kinds::CATALOG
        .all(client)
        .patch(name, &params, &Patch::Apply(&body))
        .await;
    applied
        .with_context(|| format!("cannot apply the catalog {name}"))
        .map(drop)
}

/// Returns true if the status says, for the current generation, that content of the image is served.
async fn is_serving(client: &Client, name: &str, image: &str) -> Result<bool> {
    let catalog = serde_json::to_value(kinds::CATALOG.all(client).get(name).await?)?;
    let generation = &catalog["metadata"]["generation"];
    let is_true = |condition: &&Value| {
        condition["type"] == "Serving"
            && condition["status"] == "True"
            && condition["observedGeneration"] == *generation
    };
    let serving = catalog["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| is_true(&condition));
    let resolved = catalog["status"]["resolvedSource"]["image"]["ref"]
        .as_str()
        .unwrap_or_default();
    let repository = image.rsplit_once(':').map_or(image, |(repository, _)| repository);
    let succeeded = catalog["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| {
            condition["type"] == "Progressing"
                && condition["reason"] == "Succeeded"
                && condition["observedGeneration"] == *generation
        });
    Ok(serving && succeeded && resolved.starts_with(&format!("{repository}@")))
}

async fn wait_until_serving(client: &Client, name: &str, image: &str, limit: Duration) -> Result<()> {
    let begin = Instant::now();
    while !is_serving(client, name, image).await? {
        ensure!(
            begin.elapsed() < limit,
            "the catalog {name} is not served within {limit:?}"
        );
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Reads the whole content of a catalog.
async fn read(client: &Client, world: &World, name: &str) -> Result<String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let data = secrets.get(CERTIFICATE).await?.data.unwrap_or_default();
    let authority = std::str::from_utf8(&data.get("ca.crt").context("no ca.crt")?.0)?.to_owned();
    let url = format!(
        "https://{}/catalogs/{name}/api/v1/all",
        world.catalogd.content_address()
    );
    let request = tls::http_client(Some(&authority))?
        .get(url)
        .timeout(Duration::from_secs(10));
    Ok(request.send().await?.error_for_status()?.text().await?)
}
