use olm_bundle::crd_safety::Rules;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}, "data": {"a": value}})
}

fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"},
        "spec": {"strategy": {"type": "Recreate"}, "template": {"spec": {"containers": [
            {"name": "proxy", "image": "proxy:1"},
            {"name": "manager", "image": image, "env": [{"name": "RELATED_IMAGE_X", "value": "x:1"}]}]}}}})
}

fn crd(name: &str, versions: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"scope": "Namespaced", "versions": versions}})
}

fn side(version: &str, objects: Vec<Value>) -> Side {
    Side {
        bundle: BundleIdentity {
            package: "p".to_owned(),
            name: format!("p.v{version}"),
            version: version.to_owned(),
            ..BundleIdentity::default()
        },
        objects,
    }
}

fn change(from: Vec<Value>, to: Vec<Value>) -> Change {
    Change {
        namespace: "ns".to_owned(),
        from: Some(side("1.0.0", from)),
        to: side("1.1.0", to),
        ..Change::default()
    }
}

fn differences(before: &Value, after: &Value) -> Vec<(String, Option<String>, Option<String>)> {
    let found = fields(before, after, &mut Budget::default());
    let changes = found.changes.into_iter();
    changes
        .map(|change| (change.path, change.before, change.after))
        .collect()
}

#[test]
fn roles_for_custom_resources_are_listed_and_do_not_change_the_digest() {
    let crds = vec![crd(
        "kites.example.com",
        &json!([{"name": "v1", "served": true, "storage": true}]),
    )];
    let mut with = crds.clone();
    with.extend(olm_bundle::crd_roles(&crds));
    let (without, with) = (change(Vec::new(), crds), change(Vec::new(), with));
    assert_eq!(without.digest(), with.digest());
    let (without, with) = (without.plan(), with.plan());
    assert_eq!(without.digest, with.digest);
    assert_eq!((without.counts.created, with.counts.created), (1, 4));
}

#[test]
fn objects_are_created_changed_and_deleted() {
    let plan = change(
        vec![
            config_map("kept", "1"),
            config_map("gone", "1"),
            deployment("m:1"),
        ],
        vec![config_map("kept", "1"), config_map("new", "1"), deployment("m:2")],
    )
    .plan();
    let names = |refs: &[ObjectRef]| refs.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&plan.created), ["ConfigMap ns/new"]);
    assert_eq!(names(&plan.deleted), ["ConfigMap ns/gone"]);
    assert_eq!(
        plan.changed[0].fields,
        [FieldChange {
            path: "/spec/template/spec/containers/name=manager/image".to_owned(),
            before: Some("\"m:1\"".to_owned()),
            after: Some("\"m:2\"".to_owned()),
        }]
    );
    assert_eq!(
        plan.counts,
        Counts {
            created: 1,
            changed: 1,
            deleted: 1,
            unchanged: 1,
            fields: 1
        }
    );
    assert_eq!(plan.images.added, ["m:2"]);
    assert_eq!(plan.images.removed, ["m:1"]);
    assert_eq!(plan.images.kept, 2);
    assert_eq!(plan.restarts.len(), 1);
    assert!(plan.restarts[0].interrupted);
    assert_eq!(plan.outcome(), Outcome::Change);
    let read: Plan = serde_json::from_value(json!(plan)).unwrap();
    assert_eq!(read, plan);
}

#[test]
fn the_outcome_is_nothing_only_for_the_same_bundle_and_objects() {
    let same = |version: &str| Change {
        from: Some(side("1.0.0", vec![config_map("a", "1")])),
        to: side(version, vec![config_map("a", "1")]),
        ..Change::default()
    };
    assert_eq!(same("1.0.0").plan().outcome(), Outcome::Nothing);
    assert_eq!(same("1.1.0").plan().outcome(), Outcome::Change);
    let refused = Change {
        refusals: vec!["no".to_owned()],
        ..same("1.0.0")
    };
    assert_eq!(refused.plan().outcome(), Outcome::Refused);
    let first = Change {
        from: None,
        ..same("1.0.0")
    };
    assert_eq!(first.plan().outcome(), Outcome::Change);
}

#[test]
fn marks_of_revisions_and_server_fields_are_no_change() {
    let marked = |version: &str| {
        let mut object = config_map("a", "1");
        object["metadata"]["uid"] = version.into();
        object["metadata"]["labels"] = json!({"olm.operatorframework.io/owner-name": "e", "app": "x"});
        object["metadata"]["annotations"] = json!({"olm.operatorframework.io/bundle-version": version});
        object["status"] = json!({"seen": version});
        object
    };
    let plan = change(vec![marked("1")], vec![marked("2")]).plan();
    assert_eq!((plan.counts.unchanged, plan.counts.changed), (1, 0));
    let mut bare = config_map("a", "1");
    bare["metadata"]["labels"] = json!({"app": "x"});
    assert_eq!(change(vec![marked("1")], vec![bare]).plan().counts.unchanged, 1);
}

#[test]
fn lists_are_compared_by_name_or_position() {
    let list = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({ "env": all })
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        differences(&list(&["a", "c"]), &list(&["a", "b", "c"])),
        [("/env/name=b".to_owned(), None, some("{\"name\":\"b\"}"))]
    );
    assert_eq!(
        differences(&list(&["a", "b"]), &list(&["b", "a"])),
        [("/env".to_owned(), some("[\"a\",\"b\"]"), some("[\"b\",\"a\"]"))]
    );
    assert_eq!(
        differences(
            &json!({"a/b": ["x", "y", "z"]}),
            &json!({"a/b": ["x", "w", "y", "z"]})
        ),
        [("/a~1b/1".to_owned(), None, some("\"w\""))]
    );
}

#[test]
fn values_of_secrets_are_hidden() {
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": value}});
    let plan = change(vec![secret("b25l")], vec![secret("dHdv")]).plan();
    let text = json!(plan).to_string();
    assert!(text.contains("(hidden)"), "{text}");
    assert!(!text.contains("b25l") && !text.contains("dHdv"), "{text}");
}

#[test]
fn long_plans_say_how_much_they_omit() {
    let wide = |value: &str| {
        let data: serde_json::Map<String, Value> = (0..500).map(|n| (n.to_string(), value.into())).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": value.len().to_string()}, "data": data})
    };
    let mut budget = Budget::default();
    let found = fields(&wide("a"), &wide(&"b".repeat(5000)), &mut budget);
    assert_eq!(found.changes.len() + found.more, 501);
    assert_eq!(found.changes.len(), 100);
    assert!(
        found
            .changes
            .iter()
            .all(|change| change.after.as_ref().unwrap().len() <= 200)
    );
    for _ in 0..60 {
        fields(&wide("a"), &wide("b"), &mut budget);
    }
    let last = fields(&wide("a"), &wide("b"), &mut budget);
    assert_eq!((last.changes.len(), last.more), (0, 500));
}

#[test]
fn descriptions_of_schemas_come_last() {
    let crd = |count: usize, described: &str, maximum: usize| {
        let field = |at: usize| {
            (
                format!("f{at:03}"),
                json!({"description": described, "maximum": maximum}),
            )
        };
        let fields: serde_json::Map<String, Value> = (0..count).map(field).collect();
        json!({"kind": "CustomResourceDefinition", "metadata": {"annotations": {"x/description": described}}, "spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"properties": fields}}}]}})
    };
    for (count, effects, descriptions, more) in [
        (10, 11, 10, 0),
        (60, 61, 39, 21),
        (99, 100, 0, 99),
        (120, 100, 0, 141),
    ] {
        let found = fields(&crd(count, "a", 1), &crd(count, "b", 2), &mut Budget::default());
        let named = found.changes.iter().filter(|change| !change.is_description());
        assert_eq!(
            (named.count(), found.changes.len(), found.more),
            (effects, effects + descriptions, more)
        );
        assert!(found.changes.is_sorted_by_key(FieldChange::is_description));
    }
}

#[test]
fn dry_runs_replace_the_comparison() {
    let mut plan = change(
        vec![
            config_map("same", "1"),
            config_map("drifted", "1"),
            config_map("changed", "1"),
        ],
        vec![
            config_map("same", "2"),
            config_map("drifted", "1"),
            config_map("changed", "2"),
            config_map("new", "1"),
            config_map("unseen", "1"),
        ],
    )
    .plan();
    let digest = plan.digest.clone();
    let run = |name: &str, before: Option<&str>, after: &str| DryRun {
        before: before.map(|value| config_map(name, value)),
        after: config_map(name, after),
    };
    plan.observe(vec![
        run("same", Some("2"), "2"),
        run("drifted", Some("9"), "1"),
        run("changed", Some("1"), "2"),
        run("new", None, "1"),
    ]);
    let changed: Vec<String> = plan
        .changed
        .iter()
        .map(|change| change.object.to_string())
        .collect();
    assert_eq!(changed, ["ConfigMap ns/changed", "ConfigMap ns/drifted"]);
    assert_eq!(plan.changed[1].fields[0].before.as_deref(), Some("\"9\""));
    assert_eq!(
        plan.counts,
        Counts {
            created: 2,
            changed: 2,
            deleted: 0,
            unchanged: 1,
            fields: 2
        }
    );
    assert_eq!(plan.digest, digest);
}

#[test]
fn a_revision_records_its_bundle() {
    let revision = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": "e-1", "annotations": {
            "olm.operatorframework.io/bundle-name": "p.v1", "olm.operatorframework.io/bundle-version": "1.0.0"}},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}});
    let bundle = BundleIdentity::recorded(&serde_json::from_value(revision).unwrap());
    assert_eq!(
        (
            bundle.name.as_str(),
            bundle.version.as_str(),
            bundle.revision.as_deref()
        ),
        ("p.v1", "1.0.0", Some("e-1"))
    );
}

#[test]
fn losses_are_named() {
    let version =
        |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "ns"}});
    let before = vec![
        crd("gone.x", &json!([version("v1", true)])),
        crd("moved.x", &json!([version("v1", true), version("v2", false)])),
        crd(
            "short.x",
            &json!([version("v1", true), version("v1beta1", false)]),
        ),
        namespace,
        claim,
        config_map("harmless", ""),
    ];
    let after = vec![
        crd("moved.x", &json!([version("v1", false), version("v2", true)])),
        crd("short.x", &json!([version("v1", true)])),
    ];
    let plan = Change {
        crds: compare_crds(&before, &after, Rules::Ours),
        ..change(before, after)
    }
    .plan();
    let lost: Vec<String> = plan
        .irreversible
        .iter()
        .map(|lost| format!("{}: {}", lost.object, lost.reason))
        .collect();
    assert_eq!(
        lost,
        [
            "Namespace n: the namespace is deleted, and everything in it",
            "PersistentVolumeClaim ns/c: the claim is deleted; its volume is deleted too, unless its reclaim policy is Retain",
            "CustomResourceDefinition gone.x: the CRD is deleted, and all its objects with it, unless spec.deletion.customResources keeps CRDs \
             that hold some",
            "CustomResourceDefinition moved.x: objects are stored in version v2 instead of v1: a bundle without v2 cannot be installed again",
            "CustomResourceDefinition short.x: version v1beta1 is removed: objects that are stored in it can no longer be read",
        ]
    );
    assert_eq!(plan.crds.len(), 2);
    assert_eq!(plan.crds[1].warnings.len(), 1, "{:?}", plan.crds);
}

#[test]
fn webhook_configurations_have_no_namespace() {
    let webhook = |label: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "check", "namespace": "ns", "labels": {"a": label}}})
    };
    let mut plan = change(vec![webhook("1")], vec![webhook("2")]).plan();
    assert_eq!(
        plan.changed[0].object.to_string(),
        "ValidatingWebhookConfiguration check"
    );
    // The object of the cluster has no namespace, and is the same one.
    let (mut before, mut after) = (webhook("1"), webhook("2"));
    for object in [&mut before, &mut after] {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    plan.observe(vec![DryRun {
        before: Some(before),
        after,
    }]);
    assert_eq!((plan.counts.created, plan.counts.changed), (0, 1), "{plan:#?}");
}

#[test]
fn rights_are_those_of_the_roles_and_of_the_installer() {
    let role = |verbs: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]})
    };
    let plan = change(vec![role(&["get", "watch"])], vec![role(&["delete", "get"])]).plan();
    let shown = |rights: &[Right]| rights.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        shown(&plan.rights.bundle.gained),
        ["delete pods, in the whole cluster, for holders of ClusterRole r"]
    );
    assert_eq!(
        shown(&plan.rights.bundle.lost),
        ["watch pods, in the whole cluster, for holders of ClusterRole r"]
    );
    let installer = &plan.rights.installer;
    assert_eq!(shown(&installer.gained), ["delete pods, in the whole cluster"]);
    assert_eq!(shown(&installer.lost), ["watch pods, in the whole cluster"]);
    let first = Change {
        from: None,
        ..change(Vec::new(), vec![role(&["get"])])
    };
    let installer = first.plan().rights.installer;
    assert!(
        shown(&installer.gained)
            .contains(&"create clusterroles of rbac.authorization.k8s.io, in the whole cluster".to_owned()),
        "{installer:?}"
    );
}

#[test]
fn rights_name_their_subjects_unless_the_bundle_has_one_account() {
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "ns"}});
    let granted = |kind: &str, subjects: Value, accounts: &[&str]| {
        let rbac = "rbac.authorization.k8s.io/v1";
        let mut objects: Vec<Value> = accounts.iter().map(|name| account(name)).collect();
        objects.push(
            json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "r"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}),
        );
        let mut metadata = json!({"name": "b"});
        if kind == "RoleBinding" {
            metadata["namespace"] = json!("ns");
        }
        objects.push(
            json!({"apiVersion": rbac, "kind": kind, "metadata": metadata, "subjects": subjects,
            "roleRef": {"kind": "ClusterRole", "name": "r"}}),
        );
        objects
    };
    let own = json!({"kind": "ServiceAccount", "namespace": "ns", "name": "a"});
    let narrow = granted("RoleBinding", json!([own]), &["a"]);
    let rights = |before: &[Value], after: Vec<Value>| change(before.to_vec(), after).plan().rights.bundle;
    let wide = rights(&narrow, granted("ClusterRoleBinding", json!([own]), &["a"]));
    assert_eq!(
        json!(wide),
        json!({"gained": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]})
    );
    let everybody = json!({"kind": "Group", "name": "system:authenticated"});
    let shared = rights(&narrow, granted("RoleBinding", json!([own, everybody]), &["a"]));
    assert_eq!(
        json!(shared),
        json!({"gained": [{"namespace": "ns", "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"],
            "subjects": [{"kind": "Group", "name": "system:authenticated"}]}]})
    );
    let text = "get secrets, in namespace ns, for Group system:authenticated";
    assert_eq!(shared.gained[0].to_string(), text);
    // Rights that move to the single account name it, because those that are lost name the other one.
    let default = json!({"kind": "ServiceAccount", "namespace": "ns", "name": "default"});
    let moved = rights(
        &granted("RoleBinding", json!([default]), &[]),
        granted("RoleBinding", json!([own]), &["a"]),
    );
    let text = "get secrets, in namespace ns, for ServiceAccount ns/a";
    assert_eq!(moved.gained[0].to_string(), text);
    let other = json!({"kind": "ServiceAccount", "namespace": "ns", "name": "b"});
    let two = rights(&narrow, granted("RoleBinding", json!([other]), &["b"]));
    assert_eq!(
        (two.gained[0].to_string(), two.lost[0].to_string()),
        (
            "get secrets, in namespace ns, for ServiceAccount ns/b".to_owned(),
            "get secrets, in namespace ns, for ServiceAccount ns/a".to_owned()
        )
    );
    let back: RightsChange = serde_json::from_value(json!(two)).unwrap();
    assert_eq!(back, two);
}

#[test]
fn the_digest_covers_the_inputs() {
    let base = || change(vec![config_map("a", "1")], vec![config_map("a", "2")]);
    let digest = base().digest();
    assert_eq!(base().plan().digest, digest);
    assert_eq!(digest.len(), "sha256:".len() + 64);
    let others = [
        Change {
            extension: Some("e".to_owned()),
            ..base()
        },
        Change {
            namespace: "other".to_owned(),
            ..base()
        },
        Change {
            config: Some(json!({})),
            ..base()
        },
        Change { from: None, ..base() },
        Change {
            to: side("1.1.0", vec![config_map("a", "3")]),
            ..base()
        },
        Change {
            to: side("1.1.1", vec![config_map("a", "2")]),
            ..base()
        },
        Change {
            catalog: Some(CatalogIdentity {
                name: "c".to_owned(),
                digest: None,
            }),
            ..base()
        },
    ];
    for other in others {
        assert_ne!(other.digest(), digest, "{other:?}");
    }
}

#[test]
fn the_digest_does_not_cover_results_of_checks() {
    let catalog = |digest: &str| CatalogIdentity {
        name: "c".to_owned(),
        digest: Some(digest.to_owned()),
    };
    let one = Change {
        catalog: Some(catalog("1")),
        ..change(Vec::new(), vec![config_map("a", "2")])
    };
    let other = Change {
        catalog: Some(catalog("2")),
        refusals: vec!["no".to_owned()],
        unchecked: vec!["x".to_owned()],
        ..one.clone()
    };
    assert_eq!(one.digest(), other.digest());
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4i64).prop_map(Value::from),
        "[ab/~]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("name|[ab/]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn fields_differ_exactly_if_values_differ(before in json_value(), after in json_value()) {
        let there = fields(&before, &after, &mut Budget::default());
        prop_assert_eq!(there.changes.is_empty(), before == after);
        let back = fields(&after, &before, &mut Budget::default());
        prop_assert_eq!(there.changes.len() + there.more, back.changes.len() + back.more);
        for (one, other) in there.changes.iter().zip(&back.changes) {
            prop_assert_eq!((&one.path, &one.before, &one.after), (&other.path, &other.after, &other.before));
        }
    }

    #[test]
    fn plans_do_not_depend_on_the_order_of_objects(names in prop::collection::btree_set("[a-d]{1,2}", 0..6), seed in any::<prop::sample::Index>()) {
        let objects: Vec<Value> = names.iter().map(|name| config_map(name, name)).collect();
        let mut turned = objects.clone();
        if !turned.is_empty() {
            turned.rotate_left(seed.index(objects.len()));
        }
        let plan = change(Vec::new(), objects.clone()).plan();
        prop_assert_eq!(&change(Vec::new(), turned.clone()).plan(), &plan);
        prop_assert_eq!(plan.counts.created, names.len());
        let same = change(turned, objects).plan();
        prop_assert_eq!((same.counts.unchanged, same.counts.fields), (names.len(), 0));
    }
}
