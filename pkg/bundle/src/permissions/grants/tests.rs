use serde_json::json;

use super::*;

const API: &str = "rbac.authorization.k8s.io/v1";

fn secrets() -> Value {
    json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}])
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"apiVersion": API, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

fn labelled(mut role: Value, label: &str, value: &str) -> Value {
    role["metadata"]["labels"] = json!({label: value});
    role
}

fn account(name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": "ns", "name": name})
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

fn everywhere(role: &str, subjects: &[Value]) -> Value {
    json!({"apiVersion": API, "kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "subjects": subjects,
        "roleRef": {"kind": "ClusterRole", "name": role}})
}

fn inside(namespace: &str, role: &str, subjects: &[Value]) -> Value {
    json!({"apiVersion": API, "kind": "RoleBinding", "metadata": {"name": "b", "namespace": namespace}, "subjects": subjects,
        "roleRef": {"kind": "ClusterRole", "name": role}})
}

/// Returns the rights that the second list of objects grants beyond the first: scope, rule and holders.
fn gained(before: &[Value], after: &[Value]) -> Vec<String> {
    gained_grants(&grants(before), &grants(after))
        .iter()
        .map(|grant| {
            let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(",");
            let rule = &grant.right.rule;
            let place = match &grant.right.scope {
                RuleScope::Cluster => "*",
                RuleScope::Namespace(name) => name,
            };
            let holders: Vec<String> = grant.holders.iter().map(ToString::to_string).collect();
            let what = [&rule.verbs, &rule.resources, &rule.resource_names].map(list);
            format!("{place}: {} -> {}", what.join(" ").trim_end(), holders.join(", "))
        })
        .collect()
}

#[test]
fn a_wider_scope_is_gained_and_a_narrower_one_lost() {
    let v1 = [role("x", &secrets()), inside("ns", "x", &[account("a")])];
    let v2 = [role("x", &secrets()), everywhere("x", &[account("a")])];
    assert_eq!(gained(&v1, &v2), ["*: get,list secrets -> ServiceAccount ns/a"]);
    assert_eq!(gained(&v2, &v1), Vec::<String>::new());
    let v3 = [role("x", &secrets()), inside("other", "x", &[account("a")])];
    assert_eq!(
        gained(&v1, &v3),
        ["other: get,list secrets -> ServiceAccount ns/a"]
    );
}

#[test]
fn new_subjects_gain() {
    let with = |subjects: &[Value]| [role("x", &secrets()), inside("ns", "x", subjects)];
    let one = with(&[account("a")]);
    let user = json!({"kind": "User", "name": "eve"});
    assert_eq!(
        gained(
            &one,
            &with(&[account("a"), account("b"), group("system:authenticated"), user])
        ),
        ["ns: get,list secrets -> User eve, Group system:authenticated, ServiceAccount ns/b"]
    );
    assert_eq!(
        gained(&with(&[account("a"), account("b")]), &one),
        Vec::<String>::new()
    );
    // Some rules are new to all subjects, others to one.
    let more = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]);
    assert_eq!(
        gained(
            &one,
            &[role("x", &more), inside("ns", "x", &[account("a"), account("b")])]
        ),
        [
            "ns: watch secrets -> ServiceAccount ns/a",
            "ns: get,list,watch secrets -> ServiceAccount ns/b",
        ]
    );
}

#[test]
fn a_subject_has_the_rights_of_its_groups() {
    let of = |subject: Value| [role("x", &secrets()), everywhere("x", &[subject])];
    let user = json!({"kind": "User", "name": "system:serviceaccount:ns:a"});
    assert_eq!(gained(&of(account("a")), &of(user)), Vec::<String>::new());
    for name in [
        "system:authenticated",
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
    ] {
        assert_eq!(
            gained(&of(group(name)), &of(account("a"))),
            Vec::<String>::new(),
            "{name}"
        );
        assert_eq!(gained(&of(account("a")), &of(group(name))).len(), 1, "{name}");
    }
    let authenticated = of(group("system:authenticated"));
    for covered in [
        group("system:serviceaccounts:ns"),
        json!({"kind": "User", "name": "eve"}),
    ] {
        assert_eq!(gained(&authenticated, &of(covered)), Vec::<String>::new());
    }
    for other in [
        group("system:unauthenticated"),
        json!({"kind": "User", "name": "system:anonymous"}),
    ] {
        assert_eq!(gained(&authenticated, &of(other)).len(), 1);
    }
    assert_eq!(
        gained(&of(group("system:serviceaccounts:other")), &of(account("a"))).len(),
        1
    );
}

#[test]
fn a_label_grants_to_the_holders_of_the_aggregated_role() {
    let bound = |role: Value| [role, everywhere("x", &[account("a")])];
    let labelled = |level: &str, value: &str| {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{level}");
        bound(labelled(role("x", &secrets()), &label, value))
    };
    let plain = bound(role("x", &secrets()));
    for level in ["view", "edit", "admin", "cluster-reader"] {
        assert_eq!(
            gained(&plain, &labelled(level, "true")),
            [format!("*: get,list secrets -> holders of ClusterRole {level}")]
        );
        assert_eq!(gained(&labelled(level, "true"), &plain), Vec::<String>::new());
    }
    assert_eq!(
        gained(&labelled("view", "false"), &labelled("view", "true")).len(),
        1
    );
    // Kubernetes' edit and admin include view.
    assert_eq!(
        gained(&labelled("view", "true"), &labelled("admin", "true")),
        Vec::<String>::new()
    );
    assert_eq!(
        gained(&labelled("admin", "true"), &labelled("edit", "true")).len(),
        1
    );
    let other = bound(self::labelled(
        role("x", &secrets()),
        "example.com/aggregate-to-watch",
        "true",
    ));
    assert_eq!(
        gained(&plain, &other),
        ["*: get,list secrets -> holders of ClusterRoles that aggregate example.com/aggregate-to-watch=true"]
    );
}

#[test]
fn an_aggregated_role_of_the_bundle_grants_what_it_selects() {
    let aggregated = |selector: Value| {
        json!({"apiVersion": API, "kind": "ClusterRole", "metadata": {"name": "all"}, "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [selector]}})
    };
    let v1 = [
        aggregated(json!({"matchLabels": {"part": "x"}})),
        everywhere("all", &[account("a")]),
        role("x", &secrets()),
    ];
    let mut v2 = v1.clone();
    v2[2] = labelled(role("x", &secrets()), "part", "x");
    assert_eq!(
        gained(&v1, &v2),
        ["*: get,list secrets -> holders of ClusterRole all"]
    );
    let mut wider = v2.clone();
    wider[0] = aggregated(json!({"matchExpressions": [
        {"key": "part", "operator": "Exists"}, {"key": "no", "operator": "DoesNotExist"},
        {"key": "part", "operator": "In", "values": ["x", "y"]}, {"key": "part", "operator": "NotIn", "values": ["z"]}]}));
    assert_eq!(
        gained(&v2, &wider),
        ["*: escalate clusterroles all -> ClusterRoles labelled part,!no,part in (x,y),part notin (z)"]
    );
    wider[0] = aggregated(json!({}));
    assert_eq!(
        gained(&v1, &wider),
        [
            "*: escalate clusterroles all -> all ClusterRoles",
            "*: get,list secrets -> holders of ClusterRole all",
        ]
    );
    let mut shared = v2.clone();
    shared[1] = everywhere("all", &[account("a"), account("b")]);
    assert_eq!(
        gained(&v2, &shared),
        ["*: bind clusterroles all -> ServiceAccount ns/b"]
    );
}

#[test]
fn a_role_without_holders_is_offered_to_bindings_of_others() {
    let none = Vec::<String>::new();
    let unbound = [role("x", &secrets())];
    assert_eq!(
        gained(&[], &unbound),
        ["*: get,list secrets -> holders of ClusterRole x"]
    );
    let bound = [role("x", &secrets()), everywhere("x", &[account("a")])];
    assert_eq!(
        gained(&unbound, &bound),
        ["*: get,list secrets -> ServiceAccount ns/a"]
    );
    // Others could bind the role before as well.
    assert_eq!(gained(&bound, &unbound), none);
    assert_eq!(
        gained(&[], &[role("x", &secrets()), everywhere("x", &[])]).len(),
        1
    );
    assert_eq!(gained(&unbound, &[role("renamed", &secrets())]), none);
    // The holders of one role gain rules that another role had.
    let two = |x: &Value| [role("x", x), role("y", &secrets())];
    assert_eq!(
        gained(&two(&json!([])), &two(&secrets())),
        ["*: get,list secrets -> holders of ClusterRole x"]
    );
}

#[test]
fn names_of_roles_do_not_matter_to_their_subjects() {
    let named = |name: &str| [role(name, &secrets()), everywhere(name, &[account("a")])];
    assert_eq!(gained(&named("x.v1"), &named("x.v2")), Vec::<String>::new());
    let namespaced = |name: &str| {
        [
            json!({"apiVersion": API, "kind": "Role", "metadata": {"name": name, "namespace": "ns"}, "rules": secrets()}),
            json!({"apiVersion": API, "kind": "RoleBinding", "metadata": {"name": name, "namespace": "ns"},
                "subjects": [account("a")], "roleRef": {"kind": "Role", "name": name}}),
        ]
    };
    assert_eq!(gained(&namespaced("v1"), &namespaced("v2")), Vec::<String>::new());
    assert_eq!(gained(&named("x"), &namespaced("x")), Vec::<String>::new());
    assert_eq!(gained(&namespaced("x"), &named("x")).len(), 1);
}

#[test]
fn a_role_of_others_is_a_right_to_bind_it() {
    let bound = |subjects: &[Value]| [everywhere("cluster-admin", subjects)];
    assert_eq!(
        gained(&[], &bound(&[])),
        ["*: bind clusterroles cluster-admin -> "]
    );
    assert_eq!(
        gained(&[], &bound(&[account("a"), group("g")])),
        ["*: bind clusterroles cluster-admin -> Group g, ServiceAccount ns/a"]
    );
    assert_eq!(
        gained(&bound(&[account("a")]), &bound(&[account("a"), group("g")])),
        ["*: bind clusterroles cluster-admin -> Group g"]
    );
    assert_eq!(gained(&bound(&[account("a")]), &bound(&[])), Vec::<String>::new());
    assert_eq!(
        gained(
            &[inside("ns", "cluster-admin", &[account("a")])],
            &bound(&[account("a")])
        ),
        ["*: bind clusterroles cluster-admin -> ServiceAccount ns/a"]
    );
}

#[test]
fn too_many_grants_are_a_gain_if_they_change() {
    let rules: Vec<Value> = (0..200)
        .map(|n| json!({"apiGroups": ["g"], "resources": [format!("r{n}")], "verbs": ["get"]}))
        .collect();
    let subjects: Vec<Value> = (0..200).map(|n| account(&format!("a{n}"))).collect();
    let objects = |rules: &[Value], subjects: &[Value]| [role("x", &json!(rules)), everywhere("x", subjects)];
    let all = objects(&rules, &subjects);
    assert_eq!(gained(&all, &all), [""; 0]);
    // The last rule and the last subject are beyond the limit.
    let (mut rule, mut subject) = (rules.clone(), subjects.clone());
    rule[199] = json!({"apiGroups": ["g"], "resources": ["r199"], "verbs": ["delete"]});
    subject[199] = account("other");
    let mut scoped = all.clone();
    scoped[1] = inside("ns", "x", &subjects);
    let changes = [
        (all.clone(), objects(&rule, &subjects)),
        (all.clone(), objects(&rules, &subject)),
        (objects(&rules[..50], &subjects), all.clone()),
        (scoped, all),
    ];
    for (at, (before, after)) in changes.iter().enumerate() {
        assert!(!gained(before, after).is_empty(), "change {at}");
    }
}
