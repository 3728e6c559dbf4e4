//! The schema that users get says what the renderer checks.

use std::collections::BTreeMap;

use olm_bundle::{
    Bundle, ConfigSchema, InstallMode, MAX_NAMESPACES, RenderOptions, config_schema, config_skeleton,
    namespace_selector, parse, render,
};
use proptest::prelude::*;
use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn bundle(modes: &[InstallMode]) -> Bundle {
    let modes: Vec<Value> = modes
        .iter()
        .map(|mode| json!({"type": mode.as_str(), "supported": true}))
        .collect();
    let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "buoy.v1.0.0"}, "spec": {"installModes": modes}});
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: buoy}";
    let files = BTreeMap::from([
        ("manifests/csv.json".to_owned(), csv.to_string().into_bytes()),
        (
            "metadata/annotations.yaml".to_owned(),
            annotations.as_bytes().to_vec(),
        ),
    ]);
    parse(&files).unwrap()
}

fn schema(modes: &[InstallMode], deployment_config: bool) -> Value {
    config_schema(&ConfigSchema {
        title: "buoy 1.0.0",
        modes,
        install_namespace: Some("harbour"),
        deployment_config,
    })
}

/// Every set of install modes with which something can be installed.
fn mode_sets() -> Vec<Vec<InstallMode>> {
    (1_u8..16)
        .map(|set| {
            let modes = InstallMode::ALL.into_iter().enumerate();
            modes
                .filter(|(at, _)| set & (1 << at) != 0)
                .map(|(_, mode)| mode)
                .collect()
        })
        .collect()
}

fn configurations() -> Vec<Value> {
    let names = [
        json!("harbour"),
        json!("bay"),
        json!(""),
        json!("Bad_NS"),
        json!("x".repeat(64)),
        json!(null),
        json!(5),
    ];
    let mut out: Vec<Value> = names.iter().map(|name| json!({"watchNamespace": name})).collect();
    for several in [
        json!(["a", "b"]),
        json!(["harbour"]),
        json!([]),
        json!(["a", "a"]),
        json!(["A"]),
        json!([null]),
        json!("a"),
    ] {
        out.push(json!({"watchNamespaces": several}));
    }
    out.extend([json!({}), json!([]), json!("text"), json!({"more": 1})]);
    out.push(json!({"watchNamespaces": ["a"], "watchNamespace": "bay"}));
    let labels = json!({"matchLabels": {"example.com/team": "a"}});
    out.push(json!({"watchNamespaceSelector": labels, "watchNamespace": "bay"}));
    out.push(json!({"watchNamespaceSelector": labels, "watchNamespaces": ["a"]}));
    let expression = |operator: Value, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
    for selector in [
        labels,
        json!({}),
        json!(null),
        json!("a=b"),
        json!({"matchLabels": {}}),
        json!({"matchLabels": {"a": ""}}),
        json!({"matchLabels": {"a": 1}}),
        json!({"matchLabels": {"a b": "c"}}),
        json!({"matchLabels": {"a/b/c": "c"}}),
        json!({"matchLabels": {"A.b/c": "c"}}),
        json!({"matchLabels": {"a": "x".repeat(64)}}),
        json!({"matchLabels": {"x".repeat(64): "a"}}),
        json!({"matchLabels": {"x".repeat(63): "a"}}),
        json!({"matchLabels": (0..17).map(|at| (format!("a{at}"), json!("b"))).collect::<Value>()}),
        json!({"matchLabels": {"a": "b"}, "more": 1}),
        json!({"matchExpressions": []}),
        json!({"matchExpressions": [{"key": "a"}]}),
        json!({"matchExpressions": [{"operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "Exists", "more": 1}]}),
        json!({"matchExpressions": "a"}),
        json!({"matchExpressions": [1]}),
        expression(json!("In"), json!(["b", "c"])),
        expression(json!("In"), json!([])),
        expression(json!("In"), json!([1])),
        expression(json!("NotIn"), json!(["-"])),
        expression(json!("NotIn"), json!(null)),
        expression(json!("Exists"), json!([])),
        expression(json!("DoesNotExist"), json!(["b"])),
        expression(json!("Gt"), json!(["1"])),
        expression(json!(5), json!([])),
        expression(
            json!("In"),
            json!((0..65).map(|at| format!("b{at}")).collect::<Vec<_>>()),
        ),
    ] {
        out.push(json!({"watchNamespaceSelector": selector}));
    }
    for deployment in [
        json!({}),
        json!(null),
        json!([]),
        json!({"selector": {}}),
        json!({"env": [{"name": "A", "value": "b"}]}),
        json!({"env": [{"value": "b"}]}),
        json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}),
        json!({"env": "x"}),
        json!({"envFrom": [{"secretRef": {"name": "s"}, "other": 1}]}),
        json!({"resources": {"limits": {"cpu": "1", "memory": 1}}}),
        json!({"resources": {"limits": {"cpu": true}}}),
        json!({"tolerations": [{"key": "k", "tolerationSeconds": 5}]}),
        json!({"tolerations": [{"tolerationSeconds": "soon"}]}),
        json!({"tolerations": [{"tolerationSeconds": 2.0}]}),
        json!({"tolerations": [{"tolerationSeconds": 2.5}]}),
        json!({"nodeSelector": {"a": "b"}, "annotations": {"a": "b"}}),
        json!({"nodeSelector": {"a": 1}}),
        json!({"affinity": {"nodeAffinity": {}}}),
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}}),
        json!({"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}),
        json!({"volumes": [{"emptyDir": {}}]}),
        json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
        json!({"volumeMounts": [{"name": "v"}]}),
    ] {
        out.push(json!({"watchNamespace": "bay", "deploymentConfig": deployment}));
        out.push(json!({"deploymentConfig": deployment}));
    }
    out
}

#[test]
fn schema_and_renderer_agree() {
    let mut admitted = 0;
    for modes in mode_sets() {
        let bundle = bundle(&modes);
        for deployment_config in [true, false] {
            let schema = schema(&modes, deployment_config);
            let validator = jsonschema::draft202012::new(&schema).unwrap();
            for config in configurations() {
                let mut options = RenderOptions::new("harbour");
                options.deployment_config = deployment_config;
                options.selected_namespaces = Some(vec!["bay".to_owned()]);
                options.config = Some(config.clone());
                let refusal = render(&bundle, &options).err();
                // Faults beyond the schema are another error.
                let refused = refusal
                    .as_ref()
                    .is_some_and(|error| error.to_string().contains("invalid configuration:"));
                let unsupported = refusal.is_some_and(|error| !error.is_configuration());
                if unsupported {
                    continue;
                }
                admitted += u32::from(!refused);
                assert_eq!(validator.is_valid(&config), !refused, "{modes:?} {config}");
            }
        }
    }
    assert!(admitted > 100, "{admitted}");
}

/// Values of fields, right and wrong ones.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(2.0)),
        Just(json!(2.5)),
        "[a-z]{0,3}".prop_map(Value::from),
        Just(json!("1Gi")),
    ];
    let keys = prop::sample::select(vec![
        "name",
        "value",
        "valueFrom",
        "fieldRef",
        "fieldPath",
        "secretKeyRef",
        "key",
        "optional",
        "prefix",
        "configMapRef",
        "mountPath",
        "readOnly",
        "emptyDir",
        "sizeLimit",
        "medium",
        "secret",
        "items",
        "defaultMode",
        "path",
        "limits",
        "requests",
        "cpu",
        "operator",
        "tolerationSeconds",
        "nodeAffinity",
        "podAffinity",
        "weight",
        "preference",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "values",
        "projected",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "podAffinityTerm",
        "topologyKey",
        "labelSelector",
        "sources",
        "matchLabels",
        "values",
        "example.com/team",
    ]);
    leaf.prop_recursive(5, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys.clone(), inner, 0..4).prop_map(|map| map
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}

fn any_selector() -> impl Strategy<Value = Value> {
    let word = || prop_oneof![4 => "[a-zA-Z/._-]{0,3}".prop_map(Value::from), 1 => any_value()];
    let values =
        prop_oneof![4 => prop::collection::vec(word(), 0..3).prop_map(Value::from), 1 => any_value()];
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt"]);
    let operator = prop_oneof![6 => operator.prop_map(Value::from), 1 => any_value()];
    let object = |fields: Vec<(&str, Option<Value>)>| -> Value {
        let given = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        given.collect()
    };
    let expression = (
        prop::option::weighted(0.9, word()),
        prop::option::weighted(0.9, operator),
        prop::option::weighted(0.6, values),
    );
    let expression = expression.prop_map(move |(key, operator, values)| {
        object(vec![("key", key), ("operator", operator), ("values", values)])
    });
    let expressions = prop::collection::vec(expression, 0..3).prop_map(Value::from);
    let labels = prop::collection::btree_map("[a-z/.]{0,3}", word(), 0..3)
        .prop_map(|map| map.into_iter().collect::<Value>());
    let selector = (
        prop::option::of(prop_oneof![6 => labels, 1 => any_value()]),
        prop::option::of(prop_oneof![6 => expressions, 1 => any_value()]),
    );
    let selector = selector.prop_map(move |(labels, expressions)| {
        object(vec![("matchLabels", labels), ("matchExpressions", expressions)])
    });
    prop_oneof![6 => selector, 1 => any_value()]
}

fn any_configuration() -> impl Strategy<Value = Value> {
    let fields = prop::sample::select(vec![
        "affinity",
        "annotations",
        "env",
        "envFrom",
        "nodeSelector",
        "resources",
        "tolerations",
        "volumeMounts",
        "volumes",
        "selector",
    ]);
    // Most fields are lists.
    let value = prop_oneof![
        any_value(),
        prop::collection::vec(any_value(), 0..3).prop_map(Value::from)
    ];
    let deployment = prop::collection::btree_map(fields, value, 0..3).prop_map(|map| {
        map.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<Value>()
    });
    let deployment = prop_oneof![6 => deployment, 1 => any_value()];
    let name = prop_oneof![
        Just(json!("harbour")),
        Just(json!("bay")),
        "[a-zA-Z-]{0,3}".prop_map(Value::from),
        any_value()
    ];
    let several = prop_oneof![
        prop::collection::vec("[a-c]", 0..4).prop_map(Value::from),
        any_value()
    ];
    (
        prop::option::of(name),
        prop::option::weighted(0.3, several),
        prop::option::weighted(0.3, any_selector()),
        prop::option::of(deployment),
    )
        .prop_map(|(name, several, selector, deployment)| {
            let fields = [
                ("watchNamespace", name),
                ("watchNamespaces", several),
                ("watchNamespaceSelector", selector),
                ("deploymentConfig", deployment),
            ];
            let given = fields
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)));
            given.collect()
        })
}

/// A schema as it is handed out, compiled by the library, and the bundle it is of.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn compiled() -> &'static [(Vec<InstallMode>, Bundle, jsonschema::Validator)] {
    static ALL: std::sync::OnceLock<Vec<(Vec<InstallMode>, Bundle, jsonschema::Validator)>> =
        std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let with = |modes: Vec<InstallMode>| {
            let validator = jsonschema::draft202012::new(&schema(&modes, true)).unwrap();
            (modes.clone(), bundle(&modes), validator)
        };
        mode_sets().into_iter().map(with).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The verdict of the renderer, which has upstream's words, is that of the `jsonschema` library on the schema.
    #[test]
    fn the_verdict_is_that_of_the_schema(config in any_configuration(), modes in 0_usize..15) {
        let (modes, bundle, validator) = &compiled()[modes];
        let mut options = RenderOptions::new("harbour");
        options.config = Some(config.clone());
        options.selected_namespaces = Some(vec!["bay".to_owned()]);
        let refusal = render(bundle, &options).err();
        let refused = refusal
            .as_ref()
            .is_some_and(|error| error.to_string().contains("invalid configuration:"));
        let unsupported = refusal.as_ref().is_some_and(|error| !error.is_configuration());
        if !unsupported {
            prop_assert_eq!(validator.is_valid(&config), !refused, "{:?} {} {:?}", modes, config, refusal);
        }
    }
}

#[test]
fn several_namespaces_are_chosen_by_name() {
    let modes = [InstallMode::MultiNamespace];
    let error = |config: Value| {
        let mut options = RenderOptions::new("harbour");
        options.config = Some(config);
        render(&bundle(&modes), &options)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(
        error(json!({})).as_deref(),
        Some(
            "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] \
             install modes"
        )
    );
    assert_eq!(error(json!({"watchNamespaces": ["b", "a"]})), None);
    assert_eq!(
        error(json!({"watchNamespaces": ["a", "a", 1]})).as_deref(),
        Some(
            "invalid ClusterExtension configuration: invalid configuration: multiple errors found:\n  \
             - field \"watchNamespaces.1\" repeats an item\n  \
             - invalid type for field \"watchNamespaces.2\": got number, want string"
        )
    );
}

#[test]
fn a_selector_takes_the_namespaces_that_it_matched() {
    let labels = json!({"matchLabels": {"team": "a"}});
    let rendered = |selected: Option<&[&str]>, selector: &Value| {
        let mut options = RenderOptions::new("harbour");
        options.config = Some(json!({"watchNamespaceSelector": selector}));
        options.selected_namespaces =
            selected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        render(&bundle(&[InstallMode::MultiNamespace]), &options)
            .map_err(|error| (error.to_string(), error.terminal()))
    };
    assert!(rendered(Some(&["harbour"]), &labels).is_ok());
    let (none, terminal) = rendered(Some(&[]), &labels).unwrap_err();
    assert!(
        none.starts_with("no namespace matches watchNamespaceSelector: ") && !terminal,
        "{none}"
    );
    let many: Vec<String> = (0..=MAX_NAMESPACES).map(|at| format!("n{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (refused, terminal) = rendered(Some(&many), &labels).unwrap_err();
    assert!(
        refused.starts_with("watchNamespaceSelector matches more than 100 namespaces: ") && !terminal,
        "{refused}"
    );
    let (unknown, _) = rendered(None, &labels).unwrap_err();
    assert_eq!(
        unknown,
        "the namespaces that watchNamespaceSelector matches are not known"
    );
    let (invalid, terminal) = rendered(Some(&["a"]), &json!({})).unwrap_err();
    assert!(terminal);
    assert_eq!(
        invalid,
        "invalid ClusterExtension configuration: invalid configuration: field \"watchNamespaceSelector\" must have at least one of \
         matchLabels, matchExpressions"
    );
    let parsed = |selector: &Value| namespace_selector(&json!({"watchNamespaceSelector": selector}));
    assert_eq!(parsed(&labels).unwrap().match_labels.unwrap()["team"], "a");
    assert_eq!(parsed(&json!({})), None);
}

#[test]
fn skeletons() {
    use InstallMode::{AllNamespaces, MultiNamespace, OwnNamespace, SingleNamespace};
    insta::assert_snapshot!(
        "skeleton-all",
        config_skeleton(&schema(&[AllNamespaces, OwnNamespace], true))
    );
    insta::assert_snapshot!(
        "skeleton-single",
        config_skeleton(&schema(&[MultiNamespace, SingleNamespace], false))
    );
    insta::assert_snapshot!("skeleton-none", config_skeleton(&schema(&[AllNamespaces], false)));
    let all = config_schema(&ConfigSchema {
        title: "buoy 1.0.0",
        modes: &[OwnNamespace],
        install_namespace: None,
        deployment_config: false,
    });
    insta::assert_json_snapshot!("schema-own", all);
}
