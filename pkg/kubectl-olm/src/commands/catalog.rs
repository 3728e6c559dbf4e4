//! `catalog`: the catalogs of the cluster.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use olm_api::condition::types::Catalog as Type;
use olm_api::condition::{find, find_true, is_true};
use olm_api::{AvailabilityMode, ClusterCatalog, keys};
use olm_text::object::metadata_name;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::{progress, warn};
use crate::await_ready::{Seen, settled};
use crate::cli::act::{
    AddCatalogArgs, CatalogCommand, DryRun, ListCatalogsArgs, RefreshCatalogArgs, RemoveCatalogArgs,
};
use crate::controllers::{title, wait};
use crate::failure::Failure;
use crate::manifests::{documents, list};
use crate::report::Report;
use crate::source::{Apply, Cluster, SourceError};
use crate::style::{Paint, Style};
use crate::table::Table;

/// Runs a subcommand.
pub(crate) async fn run(command: CatalogCommand, style: Style) -> Result<Report, Failure> {
    match command {
        CatalogCommand::Add(args) => add(args, style).await,
        CatalogCommand::Remove(args) => remove(args).await,
        CatalogCommand::List(args) => show(args, style).await,
        CatalogCommand::Refresh(args) => refresh(args).await,
    }
}

/// Adds a catalog, or changes the one that this command added before; positive if it is served at the end.
async fn add(args: AddCatalogArgs, style: Style) -> Result<Report, Failure> {
    let catalog = manifest(&args);
    let objects = [catalog];
    let [catalog] = &objects;
    let printed = || Ok(Report::new(list(&objects), documents(&objects)?));
    if args.write.dry_run == Some(DryRun::Client) {
        return printed();
    }
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = cluster.kinds(&objects).await?;
    let options = Apply {
        dry_run: args.write.dry_run.is_some(),
        ..Apply::default()
    };
    let applied = cluster.apply(catalog, &kinds, options).await;
    if applied.map_err(|error| not_applied(catalog, error))?.is_none() {
        return Err(Failure::NegativeAnswer(
            "the cluster does not serve ClusterCatalog: install the controllers with `kubectl olm install-controllers`"
                .to_owned(),
        ));
    }
    progress(&format!("{} applied", title(catalog)));
    if options.dry_run || args.write.no_wait {
        return printed();
    }
    let deadline = Instant::now() + args.write.timeout;
    let what = format!("ClusterCatalog {:?}", args.name);
    let ended = settled(&what, Some(deadline), async || {
        let found = cluster.catalog(&args.name).await?;
        Ok(found.map(|catalog| {
            let (paint, state) = state(&catalog);
            let message = find(catalog.conditions(), Type::Ready).map(|ready| ready.message.as_str());
            Seen {
                line: format!("{state}: {}", message.unwrap_or_default()),
                settled: paint != Paint::Warn,
                object: catalog,
            }
        }))
    });
    let shown = table(&[ended.await?], &[], style);
    Ok(Report {
        value: list(&objects),
        ..shown
    })
}

/// Returns the failure of an apply: a negative answer if another manager owns a field.
fn not_applied(catalog: &Value, error: SourceError) -> Failure {
    match error.conflict() {
        Some(source) => Failure::NegativeAnswer(format!(
            "{}: {source}. Change the catalog with the tool that applied it, or remove it first with `kubectl olm catalog remove {}`",
            title(catalog),
            metadata_name(catalog)
        )),
        None => error.into(),
    }
}

fn manifest(args: &AddCatalogArgs) -> Value {
    let mut image = json!({"ref": args.image});
    // The API refuses an interval for an image by digest, whose content cannot change.
    if args.poll_minutes > 0 && !args.image.contains('@') {
        image["pollIntervalMinutes"] = json!(args.poll_minutes);
    }
    let mut spec = json!({"source": {"type": "Image", "image": image}});
    if let Some(priority) = args.priority {
        spec["priority"] = json!(priority);
    }
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": args.name},
        "spec": spec})
}

/// Removes a catalog and waits until it is gone.
async fn remove(args: RemoveCatalogArgs) -> Result<Report, Failure> {
    let object = identity(&args.name);
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = cluster.kinds(std::slice::from_ref(&object)).await?;
    let Some(present) = cluster.present(&object, &kinds).await? else {
        return Err(absent(&cluster, &args.name).await?);
    };
    let users = users(&cluster, &args.name).await?;
    if !users.is_empty() {
        warn(&format!(
            "installed from this catalog, and without upgrades from it from now on: {}",
            users.join(", ")
        ));
    }
    let value = json!({"catalog": args.name, "extensions": users});
    if args.write.dry_run.is_some() {
        return Ok(Report::new(
            value,
            format!("{} would be deleted\n", title(&object)),
        ));
    }
    cluster.delete(&object, &present, &kinds).await?;
    if !args.write.no_wait {
        let deadline = Instant::now() + args.write.timeout;
        let gone = [(object.clone(), present.metadata.uid.clone())];
        wait::until_gone(&cluster, &gone, &kinds, deadline).await?;
    }
    Ok(Report::new(value, format!("{} deleted\n", title(&object))))
}

/// Lists the catalogs; positive if all available ones are served.
async fn show(args: ListCatalogsArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let catalogs = cluster.cluster_catalogs().await?;
    let mut used = Vec::new();
    for catalog in &catalogs {
        used.push(users(&cluster, &catalog.name_any()).await?.len());
    }
    Ok(table(&catalogs, &used, style))
}

/// Makes catalogd check the registry: it ignores a request that is older than its content. The time is that of the API server, since the
/// clock of this machine may be slow.
async fn refresh(args: RefreshCatalogArgs) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    request_refresh(&cluster, &args.name).await
}

async fn request_refresh(cluster: &Cluster, name: &str) -> Result<Report, Failure> {
    let object = identity(name);
    let kinds = cluster.kinds(std::slice::from_ref(&object)).await?;
    if cluster.present(&object, &kinds).await?.is_none() {
        return Err(absent(cluster, name).await?);
    }
    let now = cluster
        .server_time()
        .await?
        .unwrap_or_else(Timestamp::now)
        .to_string();
    let patch = json!({"metadata": {"annotations": {keys::REFRESH_REQUESTED_ANNOTATION: now}}});
    if cluster.merge(&object, &patch, &kinds, false).await?.is_none() {
        return Err(absent(cluster, name).await?);
    }
    let text = format!(
        "catalogd checks the registry for ClusterCatalog {name}; `kubectl olm catalog list` shows the content\n"
    );
    Ok(Report::new(json!({"catalog": name, "requestedAt": now}), text))
}

fn identity(name: &str) -> Value {
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name}})
}

/// Returns the failure about a catalog that does not exist.
async fn absent(cluster: &Cluster, name: &str) -> Result<Failure, SourceError> {
    let names: Vec<String> = cluster
        .cluster_catalogs()
        .await?
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect();
    Ok(Failure::NegativeAnswer(if names.is_empty() {
        "there are no ClusterCatalogs".to_owned()
    } else {
        format!(
            "there is no ClusterCatalog {name:?}; present: {}",
            names.join(", ")
        )
    }))
}

/// Returns the names of the extensions that are installed from a catalog.
async fn users(cluster: &Cluster, catalog: &str) -> Result<Vec<String>, SourceError> {
    let extensions = cluster.extensions().await?;
    let from = extensions.iter().filter(|extension| {
        let install = extension
            .status
            .as_ref()
            .and_then(|status| status.install.as_ref());
        install.and_then(|install| install.catalog.as_deref()) == Some(catalog)
    });
    Ok(from.map(kube::ResourceExt::name_any).collect())
}

/// Returns the state in one word: good if it is served or unavailable on purpose, bad if it stays as it is.
fn state(catalog: &ClusterCatalog) -> (Paint, String) {
    let conditions = catalog.conditions();
    let status = catalog.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    if catalog.metadata.deletion_timestamp.is_some() {
        return (Paint::Warn, "Deleting".to_owned());
    }
    if catalog.spec.availability_mode == Some(AvailabilityMode::Unavailable) {
        return (Paint::Good, "Unavailable".to_owned());
    }
    if observed != catalog.metadata.generation {
        return (Paint::Warn, "Pending".to_owned());
    }
    if let Some(stalled) = find_true(conditions, Type::Stalled) {
        return (Paint::Bad, stalled.reason.clone());
    }
    if is_true(conditions, Type::Ready) {
        return (Paint::Good, "Serving".to_owned());
    }
    let ready = find(conditions, Type::Ready);
    (
        Paint::Warn,
        ready.map_or_else(|| "Pending".to_owned(), |ready| ready.reason.clone()),
    )
}

/// Returns the table of catalogs, with the number of extensions of each in `used`, if that was counted.
fn table(catalogs: &[ClusterCatalog], used: &[usize], style: Style) -> Report {
    let mut table = Table::new(&[
        "NAME",
        "STATE",
        "PRIORITY",
        "IMAGE",
        "UNPACKED",
        "EXTENSIONS",
        "MESSAGE",
    ]);
    let mut rows = Vec::new();
    let mut positive = true;
    for (place, catalog) in catalogs.iter().enumerate() {
        let (paint, state) = state(catalog);
        positive &= paint == Paint::Good;
        let name = catalog.name_any();
        let priority = catalog.spec.priority.unwrap_or_default();
        let image = catalog.spec.source.image.as_ref();
        let image = image.map_or("", |image| image.ref_.as_str());
        let status = catalog.status.as_ref();
        let unpacked = status.and_then(|status| status.last_unpacked.as_ref());
        let unpacked = unpacked.map(|time| time.0.to_string()).unwrap_or_default();
        let digest = status
            .and_then(|status| status.resolved_source.as_ref())
            .map(|source| source.image.ref_.as_str());
        let extensions = used.get(place);
        let message = match paint {
            Paint::Good => "",
            _ => find(catalog.conditions(), Type::Ready).map_or("", |ready| ready.message.as_str()),
        };
        let counted = extensions.map(ToString::to_string).unwrap_or_default();
        let cells = [
            name.as_str(),
            &state,
            &priority.to_string(),
            image,
            &unpacked,
            &counted,
            message,
        ];
        table.row(paint, cells);
        rows.push(
            json!({"name": name, "state": state, "priority": priority, "image": image,
            "resolved": digest, "unpacked": unpacked, "extensions": extensions, "message": message}),
        );
    }
    let text = if table.is_empty() {
        "no ClusterCatalogs\n".to_owned()
    } else {
        table.text(style, "")
    };
    Report::new(json!({ "catalogs": rows }), text).positive(positive)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::{Uri, header};
    use axum::response::{IntoResponse as _, Json};

    use super::*;
    use crate::source::stand_in;

    #[tokio::test]
    async fn a_refresh_is_requested_by_the_clock_of_the_server() {
        let answer = async |uri: Uri| {
            let object = if uri.path() == "/apis/olm.operatorframework.io/v1" {
                stand_in::resources(&uri.path()[6..], "ClusterCatalog", "clustercatalogs", false)
            } else {
                identity("c")
            };
            ([(header::DATE, "Thu, 01 Jan 2026 00:00:00 GMT")], Json(object)).into_response()
        };
        let cluster = stand_in::serve(Router::new().fallback(answer)).await;
        let report = request_refresh(&cluster, "c").await.unwrap();
        assert_eq!(report.value["requestedAt"], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn a_field_of_another_manager_is_a_negative_answer() {
        let refusal = |code: u16| {
            let status = kube::core::Status::failure("conflict with \"kubectl\"", "").with_code(code);
            let error = SourceError::Cluster {
                what: "applying".to_owned(),
                source: Box::new(kube::Error::Api(Box::new(status))),
            };
            not_applied(&identity("c"), error)
        };
        let refused = refusal(409);
        assert_eq!(refused.code(), 1);
        assert!(
            refused.message().contains("`kubectl olm catalog remove c`"),
            "{}",
            refused.message()
        );
        assert_eq!(refusal(500).code(), 3);
    }

    fn catalog(observed: i64, conditions: &Value) -> ClusterCatalog {
        serde_json::from_value(json!({
            "metadata": {"name": "c", "generation": 2},
            "spec": {"source": {"type": "Image", "image": {"ref": "r.example/c:v1"}}},
            "status": {"observedGeneration": observed, "conditions": conditions},
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "Why", "message": "because",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn states() {
        for (observed, conditions, expected) in [
            (1, json!([condition("Ready", "True")]), (Paint::Warn, "Pending")),
            (2, json!([condition("Ready", "True")]), (Paint::Good, "Serving")),
            (2, json!([condition("Ready", "False")]), (Paint::Warn, "Why")),
            (
                2,
                json!([condition("Stalled", "True"), condition("Ready", "False")]),
                (Paint::Bad, "Why"),
            ),
        ] {
            let catalog = catalog(observed, &conditions);
            let (paint, word) = state(&catalog);
            assert_eq!((paint, word.as_str()), expected);
            let shown = table(&[catalog], &[3], Style::plain());
            assert_eq!(shown.positive, paint == Paint::Good);
            assert_eq!(
                shown.text.contains("because"),
                paint != Paint::Good,
                "{}",
                shown.text
            );
        }
    }

    #[test]
    fn only_tags_are_polled() {
        let mut args = AddCatalogArgs {
            name: "c".to_owned(),
            image: "r.example/c:v1".to_owned(),
            priority: Some(-5),
            poll_minutes: 10,
            write: crate::cli::act::WriteArgs {
                dry_run: None,
                no_wait: false,
                timeout: std::time::Duration::from_secs(1),
            },
            access: crate::cli::AccessArgs::default(),
        };
        assert_eq!(
            manifest(&args)["spec"],
            json!({"priority": -5, "source": {"type": "Image", "image": {"ref": "r.example/c:v1",
                "pollIntervalMinutes": 10}}})
        );
        args.image = format!("r.example/c@sha256:{}", "0".repeat(64));
        assert!(manifest(&args)["spec"]["source"]["image"]["pollIntervalMinutes"].is_null());
    }
}
