#![expect(clippy::needless_pass_by_value, reason = "states are written in place")]

use super::*;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn workload(kind: &str) -> Workload {
    Workload {
        kind: kind.to_owned(),
        namespace: "kites".to_owned(),
        name: "kite".to_owned(),
        selector: "app=kite".to_owned(),
        outdated: false,
        failure: None,
    }
}

/// A pod of a template, created this many seconds ago.
fn pod(name: &str, template: &str, age: i64, status: Value) -> Pod {
    let created = now() - SignedDuration::from_secs(age);
    serde_json::from_value(json!({
        "metadata": {"name": name, "creationTimestamp": created.to_string(), "labels": {TEMPLATE_LABEL: template}},
        "spec": {"containers": [{"name": "manager", "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}}}]},
        "status": status,
    }))
    .unwrap()
}

/// Status of a pod whose container is in this state.
fn state(state: Value, last: Value, restarts: i32) -> Value {
    json!({"phase": "Running", "containerStatuses": [{"name": "manager", "image": "i", "imageID": "", "ready": false,
        "restartCount": restarts, "state": state, "lastState": last}]})
}

fn waiting(reason: &str, message: &str) -> Value {
    state(
        json!({"waiting": {"reason": reason, "message": message}}),
        json!({}),
        0,
    )
}

fn ended(code: i32, reason: &str, message: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "message": message}})
}

fn running(seconds: i64) -> Value {
    json!({"running": {"startedAt": (now() - SignedDuration::from_secs(seconds)).to_string()}})
}

fn diagnose(status: Value) -> Option<String> {
    Diagnosis::of(&workload("Deployment"), &[pod("kite-1", "a", 5, status)], now()).clause()
}

#[test]
fn each_state_of_a_container_has_its_words() {
    for (status, said) in [
        (
            waiting("ErrImagePull", "not found"),
            "pod kite-1: container manager cannot start: ErrImagePull: \"not found\"",
        ),
        (
            waiting("CreateContainerConfigError", "secret \"s\" not found"),
            "pod kite-1: container manager cannot start: CreateContainerConfigError: \"secret \"s\" not found\"",
        ),
        (
            state(
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}),
                ended(1, "Error", "no\nconfiguration"),
                2,
            ),
            "pod kite-1: container manager ends again and again (CrashLoopBackOff), last with exit code 1, Error: \"no configuration\"",
        ),
        (
            state(ended(137, "OOMKilled", ""), json!({}), 0),
            "pod kite-1: container manager ended with exit code 137, OOMKilled",
        ),
        (
            state(running(2), ended(2, "Error", ""), 1),
            "pod kite-1: container manager ended with exit code 2, Error",
        ),
        (
            state(running(120), ended(2, "Error", ""), 1),
            "pod kite-1: container manager runs but is not ready: its readiness probe (HTTP GET /readyz on port 8081) has not passed",
        ),
    ] {
        assert_eq!(diagnose(status).as_deref(), Some(said));
    }
    for status in [
        waiting("ContainerCreating", ""),
        waiting("PodInitializing", ""),
        json!({"phase": "Pending"}),
        json!({"phase": "Running", "containerStatuses": [{"name": "manager", "image": "i", "imageID": "", "ready": true,
            "restartCount": 3, "state": running(2), "lastState": ended(1, "Error", "")}]}),
    ] {
        assert_eq!(diagnose(status), None);
    }
}

#[test]
fn pods_that_do_not_start() {
    let unschedulable = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu."}]});
    assert_eq!(
        diagnose(unschedulable).unwrap(),
        "pod kite-1: no node takes it: Unschedulable: \"0/1 nodes are available: 1 Insufficient cpu.\""
    );
    let gates = json!({"phase": "Running", "conditions": [{"type": "ContainersReady", "status": "True"},
        {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": "gate"}]});
    assert_eq!(
        diagnose(gates).unwrap(),
        "pod kite-1: it is not ready: ReadinessGatesNotReady: \"gate\""
    );
    let old =
        |status| Diagnosis::of(&workload("Deployment"), &[pod("kite-1", "a", 40, status)], now()).clause();
    assert_eq!(
        old(json!({"phase": "Pending"})).unwrap(),
        "pod kite-1: it has no node yet; kubectl describe pod shows its events"
    );
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "disk pressure"});
    assert_eq!(
        diagnose(evicted).unwrap(),
        "pod kite-1: it has failed: Evicted: \"disk pressure\""
    );
}

#[test]
fn init_containers_must_end_well() {
    let init = |state: Value| {
        json!({"phase": "Pending", "initContainerStatuses": [{"name": "setup", "image": "i", "imageID": "",
            "ready": false, "restartCount": 0, "state": state}], "containerStatuses": [{"name": "manager", "image": "i",
            "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}]})
    };
    assert_eq!(
        diagnose(init(ended(3, "Error", ""))).unwrap(),
        "pod kite-1: init container setup ended with exit code 3, Error"
    );
    assert_eq!(diagnose(init(ended(0, "Completed", ""))), None);
    assert_eq!(diagnose(init(running(5))), None);
}

#[test]
fn the_worst_comes_first_and_equal_ones_once() {
    let not_ready = state(running(5), json!({}), 0);
    let pods = [
        pod("kite-1", "a", 9, not_ready),
        pod("kite-2", "a", 8, waiting("ErrImagePull", "not found")),
        pod("kite-3", "a", 7, waiting("ErrImagePull", "not found")),
    ];
    let diagnosis = Diagnosis::of(&workload("Deployment"), &pods, now());
    let sentence = diagnosis.sentence(&workload("Deployment")).unwrap();
    assert_eq!(
        sentence,
        "Deployment kites/kite is not available: pod kite-2: container manager cannot start: ErrImagePull: \"not found\"."
    );
    let mut refused = workload("Deployment");
    refused.failure = Some(("FailedCreate".to_owned(), "exceeded quota: none".to_owned()));
    assert_eq!(
        Diagnosis::of(&refused, &pods[..1], now()).clause().unwrap(),
        "its pods cannot be created: FailedCreate: \"exceeded quota: none\"; pod kite-1: container manager runs but is not \
         ready: its readiness probe (HTTP GET /readyz on port 8081) has not passed"
    );
    let (quiet, other) = (Diagnosis::default(), workload("StatefulSet"));
    let worst = Diagnosis::worst([(&other, &quiet), (&refused, &diagnosis)]).unwrap();
    assert_eq!(worst.0.kind, "Deployment");
    assert!(Diagnosis::worst([(&other, &quiet)]).is_none());
}

#[test]
fn pods_of_a_former_template_do_not_count() {
    let pods = [
        pod("old", "a", 600, waiting("ErrImagePull", "old image")),
        pod("new", "b", 5, waiting("ContainerCreating", "")),
    ];
    assert_eq!(
        Diagnosis::of(&workload("Deployment"), &pods, now()).clause(),
        None
    );
    let said = Diagnosis::of(&workload("StatefulSet"), &pods, now()).clause();
    assert!(said.unwrap().contains("old image"), "a StatefulSet waits for it");
    let mut outdated = workload("Deployment");
    outdated.outdated = true;
    assert_eq!(Diagnosis::of(&outdated, &pods[..1], now()).clause(), None);
    let mut going = pods[0].clone();
    going.metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(
        Diagnosis::of(&workload("Deployment"), &[going], now()).clause(),
        None
    );
}

#[test]
fn jobs_end() {
    let job = |status| Diagnosis::of(&workload("Job"), &[pod("kite-1", "a", 5, status)], now()).clause();
    assert_eq!(job(json!({"phase": "Succeeded"})), None);
    assert_eq!(job(state(running(5), json!({}), 0)), None);
    let mut status = state(ended(1, "Error", "no database"), json!({}), 0);
    status["phase"] = json!("Failed");
    assert_eq!(
        job(status).unwrap(),
        "pod kite-1: container manager ended with exit code 1, Error: \"no database\""
    );
}

#[test]
fn alternating_states_keep_their_text() {
    let of = |status| Diagnosis::of(&workload("Deployment"), &[pod("kite-1", "a", 5, status)], now());
    let cause = of(waiting("ErrImagePull", "not found"));
    let pause = of(waiting("ImagePullBackOff", "Back-off pulling image"));
    assert_eq!(pause.clone().steady(&cause), cause);
    assert_eq!(cause.clone().steady(&pause), cause, "the cause says more");
    assert_eq!(pause.clone().steady(&Diagnosis::default()), pause);
    let other = of(waiting("ErrImagePull", "unauthorized"));
    assert_eq!(other.clone().steady(&cause), other, "another cause is said");

    let crash = |code| ended(code, "Error", "");
    let looping = |code| {
        of(state(
            json!({"waiting": {"reason": "CrashLoopBackOff"}}),
            crash(code),
            3,
        ))
    };
    let again = of(state(running(1), crash(1), 4));
    assert_eq!(again.clone().steady(&looping(1)), looping(1));
    assert_eq!(again.clone().steady(&looping(2)), again, "another end is said");
}

#[test]
fn sentences_are_bounded_and_printable() {
    let long = "ä\u{1b}[31m\n".repeat(1000);
    let mut status = waiting(&long, &long);
    status["containerStatuses"][0]["name"] = json!(long);
    let sentence = Diagnosis::of(&workload("Deployment"), &[pod(&long, "a", 5, status)], now())
        .sentence(&workload("Deployment"))
        .unwrap();
    assert!(sentence.len() <= MAX_SENTENCE + 1, "{}", sentence.len());
    assert!(
        !sentence.contains('\u{1b}') && !sentence.contains('\n'),
        "{sentence}"
    );
}
