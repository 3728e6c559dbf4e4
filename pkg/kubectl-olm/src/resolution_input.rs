//! Input of a resolution, from an extension of the cluster.

use olm_api::condition::types::Extension as Type;
use olm_api::{CatalogFilter, ClusterExtension, UpgradeConstraintPolicy};
use olm_resolve::{CatalogInput, Installed, Request, Selector};
use olm_text::name::{CatalogName, PackageName};
use olm_version::RequestedRange;
use serde_json::{Value, json};

use crate::absent;
use crate::cli::{RequestArgs, SourceArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::source::{Cluster, Sources};

/// Input of a resolution.
pub(crate) struct ResolutionInput {
    /// Request to the resolver.
    pub(crate) request: Request,
    /// Results of looking up the package, one for each catalog.
    pub(crate) inputs: Vec<CatalogInput>,
    /// Conditions of the extension: `Installed` and `Progressing`.
    pub(crate) conditions: Vec<Value>,
    /// The catalogs that the extension's selector does not match.
    pub(crate) not_selected: Vec<CatalogName>,
    /// The extension, if the input comes from one.
    pub(crate) extension: Option<ClusterExtension>,
    /// Sentence about feature gates that are assumed and may change the result.
    pub(crate) assumption: Option<String>,
}

impl ResolutionInput {
    /// Reads the input of an extension of the cluster; `args` may change the feature gates.
    ///
    /// # Errors
    /// The extension does not exist, has no catalog source, or the cluster cannot be read.
    pub(crate) async fn of_extension(
        source: &SourceArgs,
        name: &str,
        args: &RequestArgs,
    ) -> Result<Self, Failure> {
        let cluster = Cluster::connect(&source.access).await?;
        let Some((extension, installed)) = cluster.extension(name).await? else {
            return Err(Failure::NegativeAnswer(absent::extension(&cluster, name).await));
        };
        let gates = cluster.gates().await.with(args);
        Self::of(&cluster, source, extension, installed, &gates).await
    }

    /// Reads the input of an extension that may differ from the one on the cluster.
    ///
    /// # Errors
    /// The extension has no catalog source, or the cluster cannot be read.
    pub(crate) async fn of(
        cluster: &Cluster,
        source: &SourceArgs,
        extension: ClusterExtension,
        installed: Option<Installed>,
        gates: &Gates,
    ) -> Result<Self, Failure> {
        // A failure about the spec comes before one about the catalogs.
        let selector = selects(&extension)?;
        let sources = Sources::open_with(source, cluster).await?;
        Box::pin(Self::read(&sources, &selector, extension, installed, gates)).await
    }

    /// Reads the input of an extension from catalogs that are open.
    ///
    /// # Errors
    /// The extension has no catalog source, or its selector is invalid.
    pub(crate) async fn with(
        sources: &Sources,
        extension: ClusterExtension,
        installed: Option<Installed>,
        gates: &Gates,
    ) -> Result<Self, Failure> {
        let selector = selects(&extension)?;
        Self::read(sources, &selector, extension, installed, gates).await
    }

    async fn read(
        sources: &Sources,
        selector: &Selector,
        extension: ClusterExtension,
        installed: Option<Installed>,
        gates: &Gates,
    ) -> Result<Self, Failure> {
        let filter = filter(&extension)?;
        let package = PackageName::from(filter.package_name.as_str());
        let inputs = sources.lookup(&package, selector).await;
        let request = Request {
            range: filter.version.as_deref().and_then(RequestedRange::new),
            channels: filter.channels.clone().unwrap_or_default(),
            self_certified: filter.upgrade_constraint_policy == Some(UpgradeConstraintPolicy::SelfCertified),
            installed,
            release_support: gates.release_support(),
            selection: gates.selection(),
            similar: sources.similar(&package, selector, &inputs).await,
            package,
        };
        let shown = [Type::Installed, Type::Progressing];
        let conditions = extension
            .conditions()
            .iter()
            .filter(|condition| shown.iter().any(|type_| condition.type_ == *type_))
            .map(|condition| {
                json!({
                    "type": condition.type_,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": condition.message,
                })
            });
        let not_selected = sources
            .catalogs
            .iter()
            .filter(|catalog| !selector.matches(&catalog.labels));
        Ok(Self {
            request,
            assumption: gates.assumption_on_releases(&inputs),
            inputs,
            conditions: conditions.collect(),
            not_selected: not_selected.map(|catalog| catalog.name.clone()).collect(),
            extension: Some(extension),
        })
    }
}

fn filter(extension: &ClusterExtension) -> Result<&CatalogFilter, Failure> {
    let name = extension.metadata.name.as_deref().unwrap_or_default();
    extension.spec.source.catalog.as_ref().ok_or_else(|| {
        Failure::NegativeAnswer(format!("ClusterExtension {name:?} has no spec.source.catalog"))
    })
}

/// Returns the selector of an extension's catalogs.
///
/// # Errors
/// The extension has no catalog source, or its selector is invalid.
pub(crate) fn selects(extension: &ClusterExtension) -> Result<Selector, Failure> {
    selector(filter(extension)?)
}

fn selector(filter: &CatalogFilter) -> Result<Selector, Failure> {
    let labels = filter
        .selector
        .iter()
        .flat_map(|selector| selector.match_labels.iter().flatten());
    let expressions = filter
        .selector
        .iter()
        .flat_map(|selector| selector.match_expressions.iter().flatten());
    Selector::new(
        labels.map(|(key, value)| (key.as_str(), value.as_str())),
        expressions.map(|expression| {
            let values = expression.values.as_deref().unwrap_or_default();
            (expression.key.as_str(), expression.operator.as_str(), values)
        }),
    )
    .map_err(|error| Failure::NegativeAnswer(format!("spec.source.catalog.selector is invalid: {error}")))
}
