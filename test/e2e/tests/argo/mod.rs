//! The health script for Argo CD in `docs/status.md`, executed on every possible status.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use olm_api::ClusterExtensionStatus;
use olm_harness::kstatus::{Status, compute};
use olm_status::cluster_extension::extension;
use piccolo::{Closure, Executor, Lua};
use serde_json::{Value, json};

use super::{object, outcomes, time};

/// Maximum number of statuses that differ only in their texts.
const MAX_OF_EACH: usize = 4;

fn script() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/status.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, below) = text.split_once("_ClusterExtension: |\n").unwrap();
    let (script, _) = below.split_once("```").unwrap();
    script.to_owned()
}

/// Formats a value as Lua. Strings use JSON's escapes: none here has characters that the two escape differently.
fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(lua).collect();
            format!("{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            fields.iter().fold("{".to_owned(), |mut text, (key, value)| {
                write!(text, "[{}] = {}, ", json!(key), lua(value)).unwrap();
                text
            }) + "}"
        }
        other => other.to_string(),
    }
}

/// Returns the script's status and message for `object`.
fn health(script: &str, object: &Value) -> (String, String) {
    let source = format!(
        "local obj = {}\nlocal function health()\n{script}\nend\nlocal found = health()\nreturn found.status .. \"\\n\" .. found.message",
        lua(object)
    );
    let mut machine = Lua::core();
    let executor = machine
        .try_enter(|context| {
            let closure = Closure::load(context, None, source.as_bytes())?;
            Ok(context.stash(Executor::start(context, closure.into(), ())))
        })
        .unwrap();
    let answer = machine.execute::<String>(&executor).unwrap();
    let (status, message) = answer.split_once('\n').unwrap();
    (status.to_owned(), message.to_owned())
}

#[test]
fn the_documented_script_agrees_with_the_conditions() {
    let script = script();
    let unobserved = object(1, &ClusterExtensionStatus::default());
    assert_eq!(health(&script, &unobserved).0, "Progressing");
    assert_eq!(
        health(&script, &json!({"metadata": {"generation": 1}})).0,
        "Progressing"
    );
    let mut tested: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for outcome in outcomes() {
        let status = extension(&ClusterExtensionStatus::default(), &outcome, 1, &time(1));
        let (now, changed) = (object(1, &status), object(2, &status));
        let conditions = status.conditions.unwrap_or_default();
        let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
        let state = |type_: &str| find(type_).map(|condition| condition.status.clone());
        let times = tested
            .entry(format!("{:?}", ["Ready", "Reconciling", "Stalled"].map(state)))
            .or_default();
        *times += 1;
        if *times > MAX_OF_EACH {
            continue;
        }
        let (health_status, message) = health(&script, &now);
        let expected = match compute(&now) {
            Status::Current => "Healthy",
            Status::Failed => "Degraded",
            // At rest and not available: Argo CD has a status for this, kstatus has none.
            _ if find("Reconciling").is_none() => "Degraded",
            _ => "Progressing",
        };
        assert_eq!(health_status, expected, "{now}");
        assert_eq!(find("Ready").map(|ready| &ready.message), Some(&message), "{now}");
        assert_eq!(
            health(&script, &changed).0,
            "Progressing",
            "the status is of an older generation"
        );
        seen.insert(health_status);
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(tested.len(), 5, "{tested:?}");
}
