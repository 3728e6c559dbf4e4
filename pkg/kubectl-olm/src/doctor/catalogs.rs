//! Catalogs that are not served or cannot be reached, and extensions that are not ready.

use olm_api::AvailabilityMode;
use olm_api::condition::types::{Catalog as CatalogCondition, Extension as ExtensionCondition};
use olm_api::condition::{Status, untyped};
use olm_text::object::metadata_name;
use serde_json::{Value, json};

use super::{Catalog, Unread};
use crate::controllers::title;
use crate::finding::{Finding, Severity};

/// Checks that every available catalog is served and can be read.
pub(crate) fn check(catalogs: &[Catalog]) -> Vec<Finding> {
    let unavailable = json!(AvailabilityMode::Unavailable);
    let available = |catalog: &&Catalog| catalog.object["spec"]["availabilityMode"] != unavailable;
    let available: Vec<&Catalog> = catalogs.iter().filter(available).collect();
    let mut findings: Vec<Finding> = available.iter().flat_map(|catalog| one(catalog)).collect();
    findings.extend(private(&available));
    findings
}

/// Names the catalogs whose content catalogd serves only to readers with a token. That is no problem of the installation.
fn private(catalogs: &[&Catalog]) -> Option<Finding> {
    let private = catalogs
        .iter()
        .filter(|catalog| matches!(catalog.unread, Some(Unread::TokenRequired)));
    let names: Vec<&str> = private.map(|catalog| metadata_name(&catalog.object)).collect();
    if names.is_empty() {
        return None;
    }
    Some(Finding::new(
        Severity::Unchecked,
        "ClusterCatalog",
        format!(
            "the content of {} is not read: catalogd asks for a token (--catalogs-server-require-token), and the API server's proxy \
             passes none on",
            names.join(", ")
        ),
        "kubectl get clustercatalogs shows if it is served; read it from the image by --image, or on the web pages in the cluster",
    ))
}

fn one(catalog: &Catalog) -> Vec<Finding> {
    let title = title(&catalog.object);
    let name = metadata_name(&catalog.object);
    let mut findings = Vec::new();
    let serving = untyped::find(&catalog.object, CatalogCondition::Serving);
    let progressing = untyped::find(&catalog.object, CatalogCondition::Progressing);
    if !serving.is_some_and(|serving| serving.is_true()) {
        let mut messages = [serving, progressing].into_iter().flatten();
        let why = messages.find_map(|condition| condition.message);
        let why = why.unwrap_or("catalogd has not reconciled it");
        findings.push(Finding::new(
            Severity::Error,
            &title,
            format!("its content is not served: {why}"),
            format!("kubectl describe clustercatalog {name}"),
        ));
    } else if let Some(stopped) = progressing.filter(|found| found.status == Some(Status::False)) {
        let why = stopped.message.unwrap_or_default();
        findings.push(Finding::new(
            Severity::Warning,
            &title,
            format!("its content is no longer updated: {why}"),
            format!("kubectl describe clustercatalog {name}"),
        ));
    }
    if let Some(Unread::Failed(error)) = &catalog.unread {
        findings.push(Finding::new(Severity::Error,
            &title,
            format!("its content cannot be read: {error}"),
            "check the pods of catalogd, Service catalogd-service, network policies, and your right to get services/proxy",
        ));
    }
    findings
}

/// Names the extensions that are not ready.
pub(crate) fn extensions(extensions: &[Value]) -> Vec<Finding> {
    let unready = |extension: &&Value| !untyped::is_true(extension, ExtensionCondition::Ready);
    let finding = |extension: &Value| {
        let name = metadata_name(extension);
        let ready = untyped::find(extension, ExtensionCondition::Ready).and_then(|ready| ready.message);
        let why = ready.unwrap_or("operator-controller has not reconciled it");
        Finding::new(
            Severity::Warning,
            title(extension),
            format!("it is not ready: {why}"),
            format!("kubectl olm status {name}, and kubectl olm tree {name}"),
        )
    };
    extensions.iter().filter(unready).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| json!({"type": type_, "status": status, "message": format!("{type_} says")}))
            .collect();
        json!({"kind": "ClusterCatalog", "metadata": {"name": "c"}, "status": {"conditions": conditions}})
    }

    #[test]
    fn catalogs() {
        let found = |conditions: &[(&str, &str)], error: Option<&str>| {
            let catalog = Catalog {
                object: object(conditions),
                unread: error.map(|error| Unread::Failed(error.to_owned())),
            };
            one(&catalog)
                .into_iter()
                .map(|finding| (finding.severity, finding.cause))
                .collect::<Vec<_>>()
        };
        let good = [("Serving", "True"), ("Progressing", "True")];
        assert_eq!(found(&good, None), []);
        let error = |cause: &str| vec![(Severity::Error, cause.to_owned())];
        assert_eq!(
            found(&good, Some("503")),
            error("its content cannot be read: 503")
        );
        assert_eq!(
            found(&[("Serving", "False")], None),
            error("its content is not served: Serving says")
        );
        assert_eq!(
            found(&[], None),
            error("its content is not served: catalogd has not reconciled it")
        );
        let blocked = found(&[("Serving", "True"), ("Progressing", "False")], None);
        assert_eq!(blocked.len(), 1);
        assert_eq!(blocked[0].0, Severity::Warning);
    }

    #[test]
    fn unavailable_catalogs_are_meant_to_be() {
        let mut object = object(&[]);
        object["spec"]["availabilityMode"] = "Unavailable".into();
        let catalog = Catalog {
            object,
            unread: Some(Unread::TokenRequired),
        };
        assert_eq!(check(&[catalog]), []);
    }

    #[test]
    fn catalogs_that_need_a_token_are_one_unchecked_finding() {
        let private = |name: &str| {
            let mut object = object(&[("Serving", "True"), ("Progressing", "True")]);
            object["metadata"]["name"] = name.into();
            Catalog {
                object,
                unread: Some(Unread::TokenRequired),
            }
        };
        let found = check(&[private("a"), private("b")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].severity, Severity::Unchecked);
        assert!(
            found[0]
                .cause
                .starts_with("the content of a, b is not read: catalogd asks for a token"),
            "{}",
            found[0].cause
        );
    }

    #[test]
    fn extensions_that_are_not_ready() {
        let found = extensions(&[object(&[("Ready", "True")]), object(&[("Ready", "False")])]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].cause, "it is not ready: Ready says");
    }
}
