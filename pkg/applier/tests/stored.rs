//! Surveys of stored objects on a misbehaving API server.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use olm_applier::stored::{
    Limits, Rewrite, RewriteLimits, SearchLimits, Survey, SurveyError, rewrite, survey, uses,
};
use olm_bundle::crd_safety::{UnservedVersions, VersionUses, unserved_versions};
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

/// Requests so far: URI and `Accept` header.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// Answers the requests in order and records them.
fn server(answers: Vec<(u16, Value)>) -> (Client, Requests) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (answers, seen) = (Arc::new(Mutex::new(answers.into_iter())), Arc::clone(&requests));
    let service = tower::service_fn(move |request: Request<Body>| {
        let accepted = request
            .headers()
            .get("accept")
            .map(|accept| accept.to_str().unwrap());
        let accepted = accepted.unwrap_or_default().to_owned();
        seen.lock().unwrap().push((request.uri().to_string(), accepted));
        let answer = answers.lock().unwrap().next();
        async move {
            let (code, body) = answer.ok_or("too many requests")?;
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(response?)
        }
    });
    (Client::new(service, "default"), requests)
}

async fn run_survey(
    answers: Vec<(u16, Value)>,
    limits: &Limits,
) -> (Result<Survey, SurveyError>, Vec<String>) {
    let (client, requests) = server(answers);
    let found = survey(&client, "example.com", "tests", target(), limits).await;
    let requests = requests
        .lock()
        .unwrap()
        .iter()
        .map(|(uri, _)| uri.clone())
        .collect();
    (found, requests)
}

#[tokio::test]
async fn an_expired_list_continues_with_a_token() {
    let answers = vec![page(&["a", "b"], 9, "one"), expired("two"), page(&["c"], 1, "")];
    let (found, requests) = run_survey(answers, &Limits::default()).await;
    let found = found.unwrap();
    assert_eq!((found.objects, found.broken), (3, 2));
    assert_eq!(
        requests,
        [
            "/apis/example.com/v1/tests?&limit=500",
            "/apis/example.com/v1/tests?&limit=500&continue=one",
            "/apis/example.com/v1/tests?&limit=500&continue=two",
        ]
    );
}

#[tokio::test]
async fn an_expired_list_restarts_a_few_times() {
    let answers = vec![page(&["a"], 9, "one"), expired(""), page(&["a", "b"], 9, "")];
    let (found, requests) = run_survey(answers, &Limits::default()).await;
    let found = found.unwrap();
    assert_eq!((found.objects, found.broken, requests.len()), (2, 2, 3));

    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.extend([page(&["a"], 1, "one"), expired("")]);
    }
    let (found, _) = run_survey(answers, &Limits::default()).await;
    assert!(matches!(found, Err(SurveyError::Expired { .. })), "{found:?}");
}

#[tokio::test]
async fn a_long_list_expires_as_often_as_it_continues() {
    let mut answers = vec![page(&["a"], 9, "first")];
    for _ in 0..10 {
        answers.extend([expired("new"), page(&["b"], 9, "next")]);
    }
    answers.push(page(&["c"], 9, ""));
    let (found, requests) = run_survey(answers, &Limits::default()).await;
    assert_eq!((found.unwrap().objects, requests.len()), (12, 22));

    let mut answers = vec![page(&["a"], 9, "first")];
    answers.extend(vec![expired("new"); 4]);
    let (found, _) = run_survey(answers, &Limits::default()).await;
    assert!(
        matches!(found, Err(SurveyError::Expired { .. })),
        "no page follows: {found:?}"
    );
}

#[tokio::test]
async fn large_pages_are_requested_in_parts() {
    let limits = Limits {
        page: 8,
        bytes: 120,
        ..Limits::default()
    };
    let many = page(&["a", "b", "c", "d", "e"], 1, "");
    let (found, requests) =
        run_survey(vec![many, page(&["a"], 9, "one"), page(&["b"], 1, "")], &limits).await;
    assert_eq!(found.unwrap().objects, 2);
    assert!(requests[1].contains("limit=2"), "{requests:?}");

    let long = "x".repeat(200);
    let answers = vec![page(&[&long], 1, ""); 3];
    let (found, _) = run_survey(answers, &limits).await;
    assert!(matches!(found, Err(SurveyError::TooLarge { .. })), "{found:?}");
}

#[tokio::test]
async fn limits_hold() {
    let limits = Limits {
        broken: 2,
        named: 1,
        ..Limits::default()
    };
    let (found, _) = run_survey(vec![page(&["a", "b", "c"], 9, "one")], &limits).await;
    let found = found.unwrap();
    assert_eq!((found.broken, found.stopped, found.named.len()), (3, true, 1));

    let limits = Limits {
        time: Duration::ZERO,
        ..Limits::default()
    };
    let (found, _) = run_survey(vec![page(&["a"], 1, "one"); 2], &limits).await;
    assert!(matches!(found, Err(SurveyError::TimeLimit { .. })), "{found:?}");

    let (found, _) = run_survey(
        vec![(
            403,
            json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}),
        )],
        &limits,
    )
    .await;
    assert!(found.is_err());
    let (found, _) = run_survey(vec![(200, json!("nonsense"))], &Limits::default()).await;
    assert!(matches!(found, Err(SurveyError::Unreadable { .. })), "{found:?}");
}

/// A CRD change that removes `v1alpha1` and `v1beta1`.
fn crd_change() -> UnservedVersions {
    let crd = |versions: &[&str]| {
        let version = |name: &&str| json!({"name": name, "served": true, "storage": *name == "v1"});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"group": "example.com", "names": {"plural": "tests"},
               "versions": versions.iter().map(version).collect::<Vec<_>>()}, "status": {"storedVersions": ["v1"]}})
    };
    unserved_versions(&crd(&["v1alpha1", "v1beta1", "v1"]), &crd(&["v1"])).unwrap()
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

async fn search(
    answers: Vec<(u16, Value)>,
    limits: &SearchLimits,
) -> (Result<VersionUses, SurveyError>, Vec<(String, String)>) {
    let (client, requests) = server(answers);
    let found = uses(&client, &crd_change(), limits).await;
    let requests = requests.lock().unwrap().clone();
    (found, requests)
}

fn writers(found: &VersionUses) -> Vec<(&str, &str)> {
    let writers = found.writers.iter();
    writers
        .map(|(version, writer)| (version.as_str(), writer.object.as_str()))
        .collect()
}

#[tokio::test]
async fn uses_are_searched_in_metadata_until_every_version_has_one() {
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
    let (found, requests) = search(answers, &SearchLimits::default()).await;
    let found = found.unwrap();
    assert_eq!(writers(&found), [("v1alpha1", "ns/b"), ("v1beta1", "ns/d")]);
    assert_eq!((found.objects, found.partial), (4, false));
    let uris: Vec<&str> = requests.iter().map(|(uri, _)| uri.as_str()).collect();
    assert_eq!(
        uris,
        [
            "/apis/example.com/v1/tests?&limit=500",
            "/apis/example.com/v1/tests?&limit=500&continue=one",
        ]
    );
    let metadata = |(_, accepted): &(String, String)| accepted.contains("as=PartialObjectMetadataList");
    assert!(requests.iter().all(metadata), "{requests:?}");
}

#[tokio::test]
async fn the_search_for_uses_is_limited() {
    let page = || written(&[("a", &["example.com/v1"]), ("b", &[])], "more");
    let limits = SearchLimits {
        objects: 3,
        ..SearchLimits::default()
    };
    let (found, requests) = search(vec![page(), page(), page()], &limits).await;
    let found = found.unwrap();
    assert_eq!((found.objects, found.partial, requests.len()), (4, true, 2));

    let limits = SearchLimits {
        time: Duration::ZERO,
        ..SearchLimits::default()
    };
    let (found, _) = search(vec![page()], &limits).await;
    assert!(found.unwrap().partial);
}

#[tokio::test]
async fn an_expired_list_of_uses_restarts() {
    let answers = vec![
        written(&[("a", &["example.com/v1alpha1"])], "one"),
        expired(""),
        written(&[("b", &["example.com/v1beta1"])], ""),
    ];
    let (found, _) = search(answers, &SearchLimits::default()).await;
    let found = found.unwrap();
    assert_eq!((found.objects, writers(&found)), (1, vec![("v1beta1", "ns/b")]));
}

#[tokio::test]
async fn refusals_are_permanent_and_outages_are_not() {
    let crd = |strategy| {
        json!({"spec": {"conversion": {"strategy": strategy},
            "versions": [{"name": "v1alpha1", "served": true}, {"name": "v1", "served": true, "storage": true}]}})
    };
    let (plain, converted) = (crd("None"), crd("Webhook"));
    for (code, is_permanent) in [(403, true), (404, true), (500, false), (429, false), (503, false)] {
        let status = json!({"kind": "Status", "code": code, "reason": "X", "message": "no"});
        let (found, _) = search(vec![(code, status)], &SearchLimits::default()).await;
        let error = found.unwrap_err();
        assert_eq!(error.is_permanent(&plain), is_permanent, "{code}");
        assert_eq!(
            error.is_permanent(&converted),
            is_permanent || code == 500,
            "{code}"
        );
    }
    let (found, _) = search(vec![], &SearchLimits::default()).await;
    assert!(!found.unwrap_err().is_permanent(&converted), "nobody answers");
}

async fn run_rewrite(answers: Vec<(u16, Value)>) -> (Result<Rewrite, SurveyError>, Vec<String>, Vec<u64>) {
    let (client, requests) = server(answers);
    let mut told = Vec::new();
    let limits = RewriteLimits {
        failures: 2,
        ..RewriteLimits::default()
    };
    let done = rewrite(&client, "example.com", "tests", "v1", &limits, |objects| {
        told.push(objects);
    })
    .await;
    let requests = requests
        .lock()
        .unwrap()
        .iter()
        .map(|(uri, _)| uri.clone())
        .collect();
    (done, requests, told)
}

fn refusal(code: u16, message: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": "Refused", "message": message}),
    )
}

#[tokio::test]
async fn a_rewrite_retries_conflicts_and_passes_deleted_objects_over() {
    let object = || (200, json!({"metadata": {"name": "a"}, "size": 1}));
    let answers = vec![
        page(&["a", "b"], 1, "next"),
        refusal(409, "the object has been modified"),
        object(),
        object(),
        refusal(404, "not found"),
        page(&["c"], 1, ""),
        object(),
    ];
    let (done, requests, told) = run_rewrite(answers).await;
    let expected = Rewrite {
        objects: 3,
        ..Rewrite::default()
    };
    assert_eq!(done.unwrap(), expected);
    assert_eq!(told, [2, 3]);
    let paths: Vec<&str> = requests.iter().filter_map(|uri| uri.split('?').next()).collect();
    let of = |name: &str| format!("/apis/example.com/v1/tests/{name}");
    assert_eq!(paths[1..5], [of("a"), of("a"), of("a"), of("b")]);
    assert!(requests[5].contains("continue=next"), "{requests:?}");
}

#[tokio::test]
async fn a_rewrite_names_refused_objects_and_stops_at_its_limit() {
    let answers = vec![
        page(&["a", "b", "c"], 1, ""),
        refusal(422, "size is too large"),
        refusal(403, "you may not"),
    ];
    let (done, _, told) = run_rewrite(answers).await;
    let done = done.unwrap();
    assert_eq!((done.failed, done.stopped), (2, true));
    assert_eq!(done.named[0], ("a".to_owned(), "size is too large".to_owned()));
    assert!(told.is_empty());
}

#[tokio::test]
async fn an_expired_rewrite_continues() {
    let object = || (200, json!({"metadata": {"name": "a"}}));
    let answers = vec![
        page(&["a"], 1, "old"),
        object(),
        expired("new"),
        page(&["b"], 1, ""),
        object(),
    ];
    let (done, requests, _) = run_rewrite(answers).await;
    assert_eq!(done.unwrap().objects, 2);
    assert!(requests[3].contains("continue=new"), "{requests:?}");
}
