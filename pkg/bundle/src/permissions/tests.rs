use serde_json::json;

use super::*;

fn rules(objects: &[Value], options: &PermissionOptions<'_>) -> Vec<String> {
    required_rules(objects, options)
        .iter()
        .map(|required| {
            let place = match &required.scope {
                RuleScope::Cluster => "*",
                RuleScope::Namespace(name) => name,
            };
            let rule = &required.rule;
            let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(",");
            format!(
                "{place}: {} {}/{} [{}]{}",
                list(&rule.verbs),
                list(&rule.api_groups),
                list(&rule.resources),
                list(&rule.resource_names),
                list(&rule.non_resource_urls)
            )
        })
        .collect()
}

fn objects() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let read = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
    let write = json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods", "secrets"]});
    let metrics = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "ns"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc", "namespace": "ns"}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "wide"}, "rules": [write, metrics]}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "wide"},
               "roleRef": {"kind": "ClusterRole", "name": "wide"}}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": "narrow", "namespace": "other"}, "rules": [read]}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "outside", "namespace": "kube-system"},
               "roleRef": {"kind": "Role", "name": "extension-apiserver-authentication-reader"}}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
               "metadata": {"name": "hook", "namespace": "ns"}}),
        json!({"kind": "ConfigMap"}),
    ]
}

#[test]
fn escalation_by_granted_rules() {
    let options = PermissionOptions {
        owner: Some("x-1"),
        ..PermissionOptions::default()
    };
    assert_eq!(
        rules(&objects(), &options),
        [
            "*: get / []/metrics",
            "*: * /pods,secrets []",
            "*: create admissionregistration.k8s.io/validatingwebhookconfigurations []",
            "*: delete,get,patch,update admissionregistration.k8s.io/validatingwebhookconfigurations [hook]",
            "*: update olm.operatorframework.io/clusterobjectsets/finalizers [x-1]",
            "*: delete,get,patch,update rbac.authorization.k8s.io/clusterrolebindings [wide]",
            "*: create rbac.authorization.k8s.io/clusterrolebindings,clusterroles []",
            "*: delete,get,patch,update rbac.authorization.k8s.io/clusterroles [wide]",
            "kube-system: create rbac.authorization.k8s.io/rolebindings []",
            "kube-system: delete,get,patch,update rbac.authorization.k8s.io/rolebindings [outside]",
            "kube-system: bind rbac.authorization.k8s.io/roles [extension-apiserver-authentication-reader]",
            "ns: delete,get,patch,update /serviceaccounts [sa]",
            "ns: create /serviceaccounts,services []",
            "ns: delete,get,patch,update /services [svc]",
            "other: create rbac.authorization.k8s.io/roles []",
            "other: delete,get,patch,update rbac.authorization.k8s.io/roles [narrow]",
        ]
    );
}

#[test]
fn by_escalate_and_bind() {
    let options = PermissionOptions {
        escalation: Escalation::Verbs,
        ..PermissionOptions::default()
    };
    let found = rules(&objects(), &options);
    for wanted in [
        "*: escalate rbac.authorization.k8s.io/clusterroles [wide]",
        "*: bind rbac.authorization.k8s.io/clusterroles [wide]",
        "other: escalate rbac.authorization.k8s.io/roles [narrow]",
    ] {
        assert!(found.iter().any(|rule| rule == wanted), "{wanted}: {found:#?}");
    }
    assert!(!found.iter().any(|rule| rule.contains("pods")));
}

#[test]
fn discovery_precedes_guessing() {
    let find = |version: &str, kind: &str| {
        (version == "x.io/v1" && kind == "Sheep").then(|| Resource {
            plural: "sheep".to_owned(),
            namespaced: false,
        })
    };
    let options = PermissionOptions {
        resources: Some(&find),
        ..PermissionOptions::default()
    };
    let sheep = json!({"apiVersion": "x.io/v1", "kind": "Sheep", "metadata": {"name": "dolly", "namespace": "meadow"}});
    assert_eq!(
        rules(&[sheep], &options),
        [
            "*: create x.io/sheep []",
            "*: delete,get,patch,update x.io/sheep [dolly]"
        ]
    );
}

#[test]
fn covering() {
    let rule = |value: Value| PolicyRule::read(&value);
    let all = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    let scale = rule(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]}));
    let any_scale = rule(json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]}));
    let named = rule(
        json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["a"]}),
    );
    assert!(all.covers(&scale) && any_scale.covers(&scale) && scale.covers(&named));
    assert!(!named.covers(&scale) && !scale.covers(&any_scale) && !scale.covers(&all));
    let urls = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/debug/*"]}));
    let one = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/debug/pprof"]}));
    assert!(urls.covers(&one) && !one.covers(&urls) && !all.covers(&one));
}
