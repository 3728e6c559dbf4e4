//! Parser of requests to the Kubernetes API: verb, resource and object, from method, path and query.

use http::Method;

/// Verb of a request, as Kubernetes' authorization names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read of one object.
    Get,
    /// Read of a collection.
    List,
    /// Stream of events.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH of any type.
    Patch,
    /// Deletion of one object.
    Delete,
    /// Deletion of a collection.
    DeleteCollection,
}

impl Verb {
    /// Returns true if the request changes objects.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// Returns the verb as Kubernetes writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Verb.
    pub verb: Verb,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural of the kind, with the subresource after a slash. Empty for paths without objects, such as discovery.
    pub resource: String,
    /// Namespace.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: Option<String>,
    /// True if the request is a dry run.
    pub dry_run: bool,
}

impl Target {
    /// Parses method, path and query.
    #[must_use]
    pub fn read(method: &Method, path: &str, query: &str) -> Self {
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            _ => ("", [].as_slice()),
        };
        // `namespaces/NAME` and its subresources are the namespace itself; anything longer is an object in the namespace.
        let (namespace, rest) = match rest {
            ["namespaces", name, inner @ ..]
                if !inner.is_empty() && !matches!(inner, ["status" | "finalize"]) =>
            {
                (Some(*name), inner)
            }
            other => (None, other),
        };
        let (resource, name) = match rest {
            [] => (String::new(), None),
            [resource] => ((*resource).to_owned(), None),
            [resource, name] => ((*resource).to_owned(), Some((*name).to_owned())),
            [resource, name, sub @ ..] => (format!("{resource}/{}", sub.join("/")), Some((*name).to_owned())),
        };
        let has = |flag: &str| query.split('&').any(|pair| pair.starts_with(flag));
        let watches = has("watch=true") || has("watch=1");
        let verb = match (method.as_str(), &name) {
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            ("DELETE", None) => Verb::DeleteCollection,
            _ if watches => Verb::Watch,
            (_, Some(_)) => Verb::Get,
            (_, None) if resource.is_empty() => Verb::Get,
            (_, None) => Verb::List,
        };
        Self {
            verb,
            group: group.to_owned(),
            resource,
            namespace: namespace.map(str::to_owned),
            name,
            dry_run: has("dryRun=All"),
        }
    }

    /// Returns true if the request changes stored objects. Reviews, tokens and dry runs do not.
    #[must_use]
    pub fn changes_objects(&self) -> bool {
        self.verb.writes()
            && !self.dry_run
            && !self.resource.is_empty()
            && !self.resource.ends_with("reviews")
            && !self.resource.ends_with("/token")
    }

    /// Returns true for leases and events, which controllers write without changing the cluster.
    #[must_use]
    pub fn is_chatter(&self) -> bool {
        matches!(self.resource.as_str(), "leases" | "events")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, path: &str, query: &str) -> (Verb, String, String, Option<String>, Option<String>) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let target = Target::read(&method, path, query);
        (
            target.verb,
            target.group,
            target.resource,
            target.namespace,
            target.name,
        )
    }

    #[test]
    fn paths_name_kinds_objects_and_subresources() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("GET", "/api/v1/namespaces/a/configmaps/b", ""),
            (
                Verb::Get,
                String::new(),
                "configmaps".to_owned(),
                some("a"),
                some("b")
            )
        );
        assert_eq!(
            read(
                "PATCH",
                "/apis/olm.operatorframework.io/v1/clusterextensions/x/status",
                "force=true"
            ),
            (
                Verb::Patch,
                "olm.operatorframework.io".to_owned(),
                "clusterextensions/status".to_owned(),
                None,
                some("x")
            )
        );
        assert_eq!(read("GET", "/api/v1/namespaces", "watch=true&x=1").0, Verb::Watch);
        assert_eq!(read("DELETE", "/api/v1/namespaces/a", "").2, "namespaces");
        assert_eq!(
            read("DELETE", "/api/v1/namespaces/a/secrets", "").0,
            Verb::DeleteCollection
        );
        assert_eq!(read("GET", "/apis", "").2, "");
        assert_eq!(read("GET", "/apis/apps/v1", "").0, Verb::Get);
    }

    #[test]
    fn dry_runs_and_reviews_change_nothing() {
        let changes = |path: &str, query: &str| Target::read(&Method::POST, path, query).changes_objects();
        assert!(changes("/api/v1/namespaces/a/secrets", "fieldManager=x"));
        assert!(!changes(
            "/api/v1/namespaces/a/secrets",
            "fieldManager=x&dryRun=All"
        ));
        assert!(!changes("/apis/authorization.k8s.io/v1/subjectaccessreviews", ""));
        assert!(!changes("/api/v1/namespaces/a/serviceaccounts/b/token", ""));
    }
}
