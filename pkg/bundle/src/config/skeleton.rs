//! Template of a configuration: every field with its description, commented out unless it is required.

use std::fmt::Write as _;

use serde_json::Value;

use super::{WATCH_NAMESPACE_SELECTOR, WATCH_NAMESPACES};

/// Returns `spec.config` of a `ClusterExtension` as YAML, from a schema of [`config_schema`](crate::config_schema()).
/// Optional fields are comments.
pub fn config_skeleton(schema: &Value) -> String {
    let title = schema
        .get("title")
        .and_then(Value::as_str)
        .unwrap_or("Configuration")
        .replace(char::is_control, " ");
    let mut out = format!(
        "# {title}.\n# Belongs below `spec` of the ClusterExtension. Remove the `#` from the fields that you set.\n\
         config:\n  configType: Inline\n"
    );
    let required = |name: &str| {
        let lists = schema
            .get("required")
            .into_iter()
            .chain(schema.pointer("/oneOf/0/required"));
        lists
            .filter_map(Value::as_array)
            .flatten()
            .any(|item| item.as_str() == Some(name))
    };
    let Some(properties) = schema
        .get("properties")
        .and_then(Value::as_object)
        .filter(|map| !map.is_empty())
    else {
        out.push_str("  # There is nothing to configure.\n  inline: {}\n");
        return out;
    };
    let inline = if properties.keys().any(|name| required(name)) {
        "  inline:\n"
    } else {
        "  inline: {} # remove the braces when you set a field\n"
    };
    out.push_str(inline);
    // The most decisive constraint comes first.
    let order = [
        "watchNamespace",
        WATCH_NAMESPACES,
        WATCH_NAMESPACE_SELECTOR,
        "deploymentConfig",
    ];
    for (name, property) in order
        .iter()
        .filter_map(|name| Some((*name, properties.get(*name)?)))
    {
        let mark = if required(name) { "" } else { "# " };
        describe(&mut out, "    ", property, required(name));
        match property.get("properties").and_then(Value::as_object) {
            None => {
                let _ = writeln!(out, "    {mark}{name}: {}", example(name));
            }
            Some(children) => {
                let _ = writeln!(out, "    {mark}{name}:");
                for (name, property) in children {
                    describe(&mut out, "    #   ", property, false);
                    let _ = writeln!(out, "    {mark}  {name}: {}", example(name));
                }
            }
        }
    }
    out
}

fn describe(out: &mut String, indent: &str, property: &Value, required: bool) {
    if let Some(text) = property.get("description").and_then(Value::as_str) {
        let needed = if required { " Required." } else { "" };
        let _ = writeln!(out, "{indent}# {text}{needed}");
    }
}

/// Returns an example value of a field.
fn example(field: &str) -> &'static str {
    match field {
        "watchNamespace" => "my-namespace",
        WATCH_NAMESPACES => "[my-namespace, another]",
        "matchLabels" => "{example.com/team: mine}",
        "matchExpressions" => "[{key: example.com/stage, operator: In, values: [test, production]}]",
        "affinity" => "{nodeAffinity: {}, podAffinity: {}, podAntiAffinity: {}}",
        "annotations" => "{example.com/note: text}",
        "env" => "[{name: LOG_LEVEL, value: debug}]",
        "envFrom" => "[{configMapRef: {name: settings}}]",
        "nodeSelector" => "{kubernetes.io/os: linux}",
        "resources" => "{requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}",
        "tolerations" => "[{key: example.com/taint, operator: Exists}]",
        "volumeMounts" => "[{name: settings, mountPath: /settings}]",
        "volumes" => "[{name: settings, configMap: {name: settings}}]",
        _ => "null",
    }
}
