//! A survey of stored objects against an API server that misbehaves.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use olm_applier::stored::{Limits, Survey, SurveyError, survey};
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

/// Answers one request after another; the questions are kept.
async fn ask(answers: Vec<(u16, Value)>, limits: &Limits) -> (Result<Survey, SurveyError>, Vec<String>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (answers, seen) = (Arc::new(Mutex::new(answers.into_iter())), Arc::clone(&asked));
    let service = tower::service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request.uri().to_string());
        let answer = answers.lock().unwrap().next();
        async move {
            let (code, body) = answer.ok_or("nobody asks that often")?;
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()));
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(response?)
        }
    });
    let client = Client::new(service, "default");
    let found = survey(&client, "example.com", "tests", target(), limits).await;
    let asked = asked.lock().unwrap().clone();
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
