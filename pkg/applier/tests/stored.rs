//! A survey of stored objects against an API server that misbehaves.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use olm_applier::stored::{Limits, Reach, Survey, SurveyError, survey, uses};
use olm_bundle::crd_safety::{Unserved, Uses, unserved};
use olm_bundle::crd_schema::{Target, plan};
use serde_json::{Value, json};

fn target() -> Arc<Target> {
    let crd = |size: Value| {
        json!({"spec": {"group": "example.com", "names": {"plural": "tests"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"size": size}}}}]}})
    };
    let plan = plan(
        &crd(json!({"type": "integer"})),
        &crd(json!({"type": "integer", "maximum": 5})),
    );
    Arc::new(plan.targets.into_iter().next().unwrap())
}

fn page(names: &[&str], size: i64, next: &str) -> (u16, Value) {
    let items: Vec<Value> = names
        .iter()
        .map(|name| json!({"metadata": {"name": name}, "size": size}))
        .collect();
    (200, json!({"metadata": {"continue": next}, "items": items}))
}

fn expired(next: &str) -> (u16, Value) {
    let metadata = if next.is_empty() {
        json!({})
    } else {
        json!({"continue": next})
    };
    (
        410,
        json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old", "metadata": metadata}),
    )
}

/// The requests so far: the URI of each, and its header `Accept`.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Answers one request after another; the requests are kept.
fn server(answers: Vec<(u16, Value)>) -> (Client, Asked) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (answers, seen) = (Arc::new(Mutex::new(answers.into_iter())), Arc::clone(&asked));
    let service = tower::service_fn(move |request: Request<Body>| {
        let accepted = request
            .headers()
            .get("accept")
            .map(|accept| accept.to_str().unwrap());
        let accepted = accepted.unwrap_or_default().to_owned();
        seen.lock().unwrap().push((request.uri().to_string(), accepted));
        let answer = answers.lock().unwrap().next();
        async move {
            let (code, body) = answer.ok_or("nobody asks that often")?;
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(response?)
        }
    });
    (Client::new(service, "default"), asked)
}

async fn ask(answers: Vec<(u16, Value)>, limits: &Limits) -> (Result<Survey, SurveyError>, Vec<String>) {
    let (client, asked) = server(answers);
    let found = survey(&client, "example.com", "tests", target(), limits).await;
    let asked = asked.lock().unwrap().iter().map(|(uri, _)| uri.clone()).collect();
    (found, asked)
}

#[tokio::test]
async fn a_list_that_grows_too_old_goes_on_where_it_can() {
    let answers = vec![page(&["a", "b"], 9, "one"), expired("two"), page(&["c"], 1, "")];
    let (found, asked) = ask(answers, &Limits::default()).await;
    let found = found.unwrap();
    assert_eq!((found.objects, found.broken), (3, 2));
    assert_eq!(
        asked,
        [
            "/apis/example.com/v1/tests?&limit=500",
            "/apis/example.com/v1/tests?&limit=500&continue=one",
            "/apis/example.com/v1/tests?&limit=500&continue=two",
        ]
    );
}

#[tokio::test]
async fn or_begins_anew_but_not_for_ever() {
    let answers = vec![page(&["a"], 9, "one"), expired(""), page(&["a", "b"], 9, "")];
    let (found, asked) = ask(answers, &Limits::default()).await;
    let found = found.unwrap();
    assert_eq!((found.objects, found.broken, asked.len()), (2, 2, 3));

    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.extend([page(&["a"], 1, "one"), expired("")]);
    }
    let (found, _) = ask(answers, &Limits::default()).await;
    assert!(matches!(found, Err(SurveyError::Restless { .. })), "{found:?}");
}

#[tokio::test]
async fn pages_that_are_too_large_are_asked_for_in_parts() {
    let limits = Limits {
        page: 8,
        bytes: 120,
        ..Limits::default()
    };
    let many = page(&["a", "b", "c", "d", "e"], 1, "");
    let (found, asked) = ask(vec![many, page(&["a"], 9, "one"), page(&["b"], 1, "")], &limits).await;
    assert_eq!(found.unwrap().objects, 2);
    assert!(asked[1].contains("limit=2"), "{asked:?}");

    let long = "x".repeat(200);
    let answers = vec![page(&[&long], 1, ""); 3];
    let (found, _) = ask(answers, &limits).await;
    assert!(matches!(found, Err(SurveyError::TooLarge { .. })), "{found:?}");
}

#[tokio::test]
async fn bounds_hold() {
    let limits = Limits {
        broken: 2,
        named: 1,
        ..Limits::default()
    };
    let (found, _) = ask(vec![page(&["a", "b", "c"], 9, "one")], &limits).await;
    let found = found.unwrap();
    assert_eq!((found.broken, found.stopped, found.named.len()), (3, true, 1));

    let limits = Limits {
        time: Duration::ZERO,
        ..Limits::default()
    };
    let (found, _) = ask(vec![page(&["a"], 1, "one"); 2], &limits).await;
    assert!(matches!(found, Err(SurveyError::TooLong { .. })), "{found:?}");

    let (found, _) = ask(
        vec![(
            403,
            json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}),
        )],
        &limits,
    )
    .await;
    assert!(found.is_err());
    let (found, _) = ask(vec![(200, json!("nonsense"))], &Limits::default()).await;
    assert!(matches!(found, Err(SurveyError::Unreadable { .. })), "{found:?}");
}

/// A CRD that loses `v1alpha1` and `v1beta1`.
fn loss() -> Unserved {
    let crd = |versions: &[&str]| {
        let version = |name: &&str| json!({"name": name, "served": true, "storage": *name == "v1"});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"group": "example.com", "names": {"plural": "tests"},
               "versions": versions.iter().map(version).collect::<Vec<_>>()}, "status": {"storedVersions": ["v1"]}})
    };
    unserved(&crd(&["v1alpha1", "v1beta1", "v1"]), &crd(&["v1"])).unwrap()
}

/// A page of objects, each with the API versions of its managed fields.
fn written(objects: &[(&str, &[&str])], next: &str) -> (u16, Value) {
    let entry = |version: &&str| json!({"manager": "kubectl", "operation": "Update", "apiVersion": version, "fieldsV1": {"f:spec": {}}});
    let items: Vec<Value> = objects
        .iter()
        .map(|(name, versions)| {
            json!({"metadata": {"namespace": "ns", "name": name,
                   "managedFields": versions.iter().map(entry).collect::<Vec<_>>()}})
        })
        .collect();
    (200, json!({"metadata": {"continue": next}, "items": items}))
}

async fn look(
    answers: Vec<(u16, Value)>,
    reach: &Reach,
) -> (Result<Uses, SurveyError>, Vec<(String, String)>) {
    let (client, asked) = server(answers);
    let found = uses(&client, &loss(), reach).await;
    let asked = asked.lock().unwrap().clone();
    (found, asked)
}

fn writers(found: &Uses) -> Vec<(&str, &str)> {
    let writers = found.writers.iter();
    writers
        .map(|(version, writer)| (version.as_str(), writer.object.as_str()))
        .collect()
}

#[tokio::test]
async fn uses_are_looked_for_in_metadata_until_there_is_one_of_each_version() {
    let others = [
        "example.com/v1",
        "other.example.com/v1alpha1",
        "v1alpha1",
        "example.com/v1alpha10",
    ];
    let answers = vec![
        written(&[("a", &others), ("b", &["example.com/v1alpha1"])], "one"),
        written(
            &[
                ("c", &["example.com/v1alpha1"]),
                ("d", &["example.com/v1", "example.com/v1beta1"]),
            ],
            "two",
        ),
    ];
    let (found, asked) = look(answers, &Reach::default()).await;
    let found = found.unwrap();
    assert_eq!(writers(&found), [("v1alpha1", "ns/b"), ("v1beta1", "ns/d")]);
    assert_eq!((found.objects, found.partial), (4, false));
    let uris: Vec<&str> = asked.iter().map(|(uri, _)| uri.as_str()).collect();
    assert_eq!(
        uris,
        [
            "/apis/example.com/v1/tests?&limit=500",
            "/apis/example.com/v1/tests?&limit=500&continue=one",
        ]
    );
    let metadata = |(_, accepted): &(String, String)| accepted.contains("as=PartialObjectMetadataList");
    assert!(asked.iter().all(metadata), "{asked:?}");
}

#[tokio::test]
async fn the_look_for_uses_is_bounded() {
    let page = || written(&[("a", &["example.com/v1"]), ("b", &[])], "more");
    let reach = Reach {
        objects: 3,
        ..Reach::default()
    };
    let (found, asked) = look(vec![page(), page(), page()], &reach).await;
    let found = found.unwrap();
    assert_eq!((found.objects, found.partial, asked.len()), (4, true, 2));

    let reach = Reach {
        time: Duration::ZERO,
        ..Reach::default()
    };
    let (found, _) = look(vec![page()], &reach).await;
    assert!(found.unwrap().partial);
}

#[tokio::test]
async fn a_list_of_uses_that_grows_too_old_begins_anew() {
    let answers = vec![
        written(&[("a", &["example.com/v1alpha1"])], "one"),
        expired(""),
        written(&[("b", &["example.com/v1beta1"])], ""),
    ];
    let (found, _) = look(answers, &Reach::default()).await;
    let found = found.unwrap();
    assert_eq!((found.objects, writers(&found)), (1, vec![("v1beta1", "ns/b")]));
}

#[tokio::test]
async fn a_refusal_lasts_and_an_outage_does_not() {
    for (code, lasts) in [(403, true), (404, true), (500, true), (429, false), (503, false)] {
        let status = json!({"kind": "Status", "code": code, "reason": "X", "message": "no"});
        let (found, _) = look(vec![(code, status)], &Reach::default()).await;
        assert_eq!(found.unwrap_err().lasts(), lasts, "{code}");
    }
    let (found, _) = look(vec![], &Reach::default()).await;
    assert!(!found.unwrap_err().lasts(), "nobody answers");
}
