//! State of one scenario: its names, its catalogs and its observations.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::Context as _;
use kube::discovery::ApiResource;
use olm_e2e::cluster::Cluster;
use olm_e2e::content::{self, Keyword, Row};
use olm_e2e::environment::Environment;
use olm_harness::eventually;
use olm_harness::{AggregatedServer, ImageBuilder};
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::steps::Certificate;

/// Timeout of a step; generous, since it only delays failures.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(90);

/// Objects of one kind that an extension had at one point in time.
pub(crate) struct ObjectSnapshot {
    pub(crate) kind: ApiResource,
    /// resourceVersion at that time.
    pub(crate) version: String,
    /// (`kind/name`, uid).
    pub(crate) objects: Vec<(String, String)>,
}

/// A scenario's state.
#[derive(cucumber::World)]
#[world(init = Self::new)]
pub(crate) struct OlmWorld {
    pub(crate) environment: &'static Environment,
    /// Unique part of all names of the scenario.
    pub(crate) id: String,
    /// Unpublished versions of catalogs: (catalog, version) → rows.
    pub(crate) versions: BTreeMap<(String, String), Vec<Row>>,
    /// Digests of published catalogs: (catalog, version) → digest.
    pub(crate) digests: BTreeMap<(String, String), String>,
    /// Last response of the content API.
    pub(crate) answer: Option<Answer>,
    /// `kind/name` → uid of objects that the scenario removed.
    pub(crate) removed: BTreeMap<String, String>,
    /// Objects of the extension at the time of the step that noted them.
    pub(crate) snapshots: Vec<ObjectSnapshot>,
    /// Digests of the pending plans that the scenario saw.
    pub(crate) plans: Vec<String>,
    /// Serving certificate that the scenario observed, and its trust.
    pub(crate) certificate: Option<Certificate>,
    /// Server of the bundle's API service.
    pub(crate) aggregated: Option<AggregatedServer>,
}

/// A raw response of catalogd.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Debug for OlmWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OlmWorld")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl OlmWorld {
    async fn new() -> anyhow::Result<Self> {
        let environment = Environment::shared().await?;
        Ok(Self {
            environment,
            id: olm_harness::unique_id(),
            versions: BTreeMap::new(),
            digests: BTreeMap::new(),
            answer: None,
            removed: BTreeMap::new(),
            snapshots: Vec::new(),
            plans: Vec::new(),
            certificate: None,
            aggregated: None,
        })
    }

    pub(crate) fn cluster(&self) -> Cluster {
        self.environment.cluster()
    }

    /// Returns the name of the ClusterExtension.
    pub(crate) fn name(&self) -> String {
        format!("ce-{}", self.id)
    }

    /// Returns the install namespace.
    pub(crate) fn namespace(&self) -> String {
        format!("ns-{}", self.id)
    }

    pub(crate) fn catalog(&self, name: &str) -> String {
        format!("{name}-catalog-{}", self.id)
    }

    /// Expands `${...}` to the scenario's names.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut out = text
            .replace("${NAME}", &self.name())
            .replace("${TEST_NAMESPACE}", &self.namespace())
            .replace("${SCENARIO_ID}", &self.id)
            .replace("${ETAG}", &self.etag())
            .replace("${REGISTRY}", &self.environment.registry.host());
        for (prefix, name) in [
            (
                "${PACKAGE:",
                (|world: &Self, name: &str| content::package_name(name, &world.id))
                    as fn(&Self, &str) -> String,
            ),
            ("${CATALOG:", |world, name| world.catalog(name)),
            ("${DAY:", |_, offset| {
                content::support::day(offset).map_or_else(|error| format!("{error:#}"), |day| day.to_string())
            }),
        ] {
            while let Some((before, rest)) = out.split_once(prefix) {
                let Some((local, after)) = rest.split_once('}') else {
                    break;
                };
                out = format!("{before}{}{after}", name(self, local));
            }
        }
        out
    }

    /// Returns the entity tag of the last response.
    fn etag(&self) -> String {
        let tag = self.answer.as_ref().and_then(|answer| answer.headers.get("etag"));
        tag.and_then(|tag| tag.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    }

    /// Parses the YAML of a step's text block, with names expanded.
    pub(crate) fn document(&self, text: &str) -> anyhow::Result<Value> {
        let text = self.expand(text);
        serde_saphyr::from_str(&text).with_context(|| format!("not YAML: {text}"))
    }

    /// Pushes the bundles and the catalog of `rows`; returns the catalog image's reference.
    pub(crate) async fn publish(
        &mut self,
        catalog: &str,
        version: &str,
        rows: &[Row],
    ) -> anyhow::Result<String> {
        let registry = &self.environment.registry;
        for row in rows
            .iter()
            .filter(|row| !row.contents.contains(&Keyword::NoImage))
        {
            self.push_bundle(row).await?;
        }
        let repository = format!("e2e/{}:{version}", self.catalog(catalog));
        let digest = ImageBuilder::new()
            .label("operators.operatorframework.io.index.configs.v1", "/configs")
            .file(
                "configs/catalog.json",
                content::catalog_file(rows, &self.id, &registry.host()),
            )
            .push(registry, &repository)
            .await?;
        self.digests
            .insert((catalog.to_owned(), version.to_owned()), digest);
        Ok(format!("{}/{repository}", registry.host()))
    }

    /// Pushes one bundle's image.
    pub(crate) async fn push_bundle(&self, row: &Row) -> anyhow::Result<()> {
        let mut image = ImageBuilder::new();
        for (path, bytes) in content::bundle_files(row, &self.id) {
            image = image.file(path, bytes);
        }
        let repository =
            content::bundle_repository(&content::package_name(&row.package, &self.id), &row.version);
        image.push(&self.environment.registry, &repository).await?;
        Ok(())
    }

    /// Waits until `check` returns `Ok`; panics with its last error.
    pub(crate) async fn eventually<T>(&self, what: &str, check: impl AsyncFnMut() -> anyhow::Result<T>) -> T {
        match eventually(STEP_TIMEOUT, what, check).await {
            Ok(value) => value,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Cleans up after a successful scenario; a failed one keeps its objects for inspection.
    pub(crate) async fn finish(&self, title: &str, failed: bool) {
        let cluster = self.cluster();
        if failed {
            eprintln!("--- {title}: state of {}", self.name());
            for reference in [
                format!("clusterextension/{}", self.name()),
                format!("clusterobjectset/{}-1", self.name()),
            ] {
                if let Ok(Some(object)) = cluster.get(&reference, "").await {
                    eprintln!("{reference}: {}", object.data["status"]);
                }
            }
            return;
        }
        for reference in [
            format!("clusterextension/{}", self.name()),
            format!("clustercatalog/{}", self.catalog("test")),
            format!("clustercatalog/{}", self.catalog("other")),
            format!("clustercatalog/broken-{}", self.id),
        ] {
            if let Ok((api, name)) = cluster.lookup(&reference, "").await {
                let _gone_already = api.delete(&name, &kube::api::DeleteParams::default()).await;
            }
        }
    }
}
