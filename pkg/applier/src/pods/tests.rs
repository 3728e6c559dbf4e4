use super::reader::slim;
use super::*;
use serde_json::json;

fn workload(name: &str) -> Workload {
    Workload {
        kind: "Deployment".to_owned(),
        namespace: "n".to_owned(),
        name: name.to_owned(),
        selector: format!("app={name}"),
        outdated: false,
        failure: None,
    }
}

fn client() -> Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn watches_follow_the_unavailable_workloads() {
    let (triggers, _receiver) = mpsc::channel(1);
    let pods = Pods::new(triggers);
    let revision = Identity {
        name: "kite-1".to_owned(),
        uid: "u".to_owned(),
        number: 1,
        owner_name: "kite".to_owned(),
        siblings: Vec::new(),
    };
    let (one, mut two) = (workload("one"), workload("two"));
    let both = [one.clone(), two.clone()];
    assert_eq!(pods.keep("u", &both), both);
    for workload in both {
        pods.watch(&revision, workload, &client(), false);
    }
    assert_eq!(MAX_WATCHES - pods.slots.available_permits(), 2);
    assert_eq!(pods.sentence("u"), None);
    two.failure = Some(("FailedCreate".to_owned(), "quota".to_owned()));
    assert_eq!(pods.keep("u", &[two]), []);
    assert_eq!(
        pods.sentence("u").unwrap(),
        "Deployment n/two is not available: its pods cannot be created: FailedCreate: \"quota\"."
    );
    pods.release("u");
    assert_eq!(pods.sentence("u"), None);
    // An aborted task is dropped by the runtime.
    while pods.slots.available_permits() < MAX_WATCHES {
        tokio::task::yield_now().await;
    }
    let slots: Vec<_> = std::iter::from_fn(|| pods.slots.clone().try_acquire_owned().ok()).collect();
    assert_eq!(slots.len(), MAX_WATCHES);
}

#[test]
fn kept_pods_have_what_a_diagnosis_reads() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {"c": "d"}, "managedFields": []},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i", "env": [{"name": "SECRET", "value": "x"}],
            "readinessProbe": {"tcpSocket": {"port": 1}}}]},
    }))
    .unwrap();
    assert_eq!(
        serde_json::to_value(slim(pod)).unwrap(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i",
                "readinessProbe": {"tcpSocket": {"port": 1}}}]}})
    );
}
