//! APIs that serve a namespace, and what a person may do with them there. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::authorization::v1::ResourceRule;

/// Namespaced API that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedApi {
    /// API group.
    pub(crate) group: String,
    /// Kind.
    pub(crate) kind: String,
    /// Resource of the kind.
    pub(crate) plural: String,
    /// Versions that the cluster serves, the preferred one first.
    pub(crate) versions: Vec<String>,
}

impl ServedApi {
    /// Returns the name of the API's CustomResourceDefinition: `plural.group`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// Extension that installed an API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Installer {
    /// Name of the ClusterExtension.
    pub(crate) extension: String,
    /// Package of its bundle.
    pub(crate) package: String,
    /// Version of its bundle.
    pub(crate) version: String,
}

/// Verbs of a person on an API, in the order of their names here.
const VERBS: [(&str, &str); 4] = [
    ("get", "read"),
    ("create", "create"),
    ("update", "change"),
    ("delete", "delete"),
];

/// API of a namespace with the rights of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TenantApi {
    /// The API.
    pub(crate) api: ServedApi,
    /// The extension; `None` if it is not known.
    pub(crate) installer: Option<Installer>,
    /// Actions that the person may take on objects of the API in the namespace.
    pub(crate) may: Vec<&'static str>,
}

/// Returns true for groups of Kubernetes itself, whose APIs no extension installs.
fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Returns the APIs of extensions, by extension and name. `installers` are the extensions by the names of their CRDs; without them,
/// every API counts that is not Kubernetes' own.
pub(crate) fn apis(
    served: Vec<ServedApi>,
    rules: &[ResourceRule],
    installers: Option<&BTreeMap<String, Installer>>,
) -> Vec<TenantApi> {
    let mut apis: Vec<TenantApi> = served
        .into_iter()
        .filter_map(|api| {
            let installer = match installers {
                Some(known) => Some(known.get(&api.name())?.clone()),
                None if is_built_in(&api.group) => return None,
                None => None,
            };
            let may = VERBS.iter().filter(|(verb, _)| permits(rules, verb, &api));
            Some(TenantApi {
                may: may.map(|(_, name)| *name).collect(),
                installer,
                api,
            })
        })
        .collect();
    apis.sort_by_cached_key(|api| {
        let extension = api
            .installer
            .as_ref()
            .map(|installer| installer.extension.clone());
        (extension, api.api.group.clone(), api.api.plural.clone())
    });
    apis
}

/// Returns true if a rule permits the verb on every object of the API.
fn permits(rules: &[ResourceRule], verb: &str, api: &ServedApi) -> bool {
    let has = |list: Option<&Vec<String>>, wanted: &str| {
        list.is_some_and(|list| list.iter().any(|item| item == "*" || item == wanted))
    };
    rules.iter().any(|rule| {
        has(Some(&rule.verbs), verb)
            && has(rule.api_groups.as_ref(), &api.group)
            && has(rule.resources.as_ref(), &api.plural)
            && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(group: &str, plural: &str) -> ServedApi {
        ServedApi {
            group: group.to_owned(),
            kind: "Any".to_owned(),
            plural: plural.to_owned(),
            versions: vec!["v1".to_owned()],
        }
    }

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> ResourceRule {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        ResourceRule {
            api_groups: Some(texts(groups)),
            resources: Some(texts(resources)),
            resource_names: None,
            verbs: texts(verbs),
        }
    }

    #[test]
    fn only_apis_of_extensions_with_the_persons_rights() {
        let served = || {
            vec![
                api("example.com", "kites"),
                api("other.example.com", "things"),
                api("apps", "deployments"),
                api("networking.k8s.io", "ingresses"),
            ]
        };
        let mut single = rule(&["example.com"], &["kites"], &["delete"]);
        single.resource_names = Some(vec!["mine".to_owned()]);
        let rules = [rule(&["example.com"], &["*"], &["get", "create"]), single];
        let unknown = apis(served(), &rules, None);
        let names: Vec<String> = unknown.iter().map(|api| api.api.name()).collect();
        assert_eq!(names, ["kites.example.com", "things.other.example.com"]);
        assert_eq!(
            unknown[0].may,
            ["read", "create"],
            "a right on one object is none on all"
        );
        assert_eq!(unknown[1].may, [""; 0]);
        let installers = BTreeMap::from([("kites.example.com".to_owned(), Installer::default())]);
        let known = apis(served(), &rules, Some(&installers));
        assert_eq!(known.len(), 1);
        let all = apis(served(), &[rule(&["*"], &["*"], &["*"])], Some(&installers));
        assert_eq!(all[0].may, ["read", "create", "change", "delete"]);
    }
}
