//! Tests on a real API server: leases, the self-managed certificate, access to metrics, events.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    clippy::similar_names,
    clippy::unused_async,
    clippy::too_many_lines,
    reason = "tests may fail loudly"
)]

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    ByteString,
    api::{
        coordination::v1::Lease,
        core::v1::{Namespace, ObjectReference, Secret},
        events::v1::Event,
    },
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use olm_harness::ControlPlane;
use olm_runtime::{
    events::Events,
    lease::{LeaseConfig, LeaseError, run_when_leader},
    metrics,
    tls::{CATALOGD_OWN_CERT, OwnCertificate, ServingCert, TlsError, own_ca},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "olmv1-system";

async fn cluster() -> (ControlPlane, Client) {
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client();
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    (control_plane, client)
}

fn short_lease(name: &str) -> LeaseConfig {
    LeaseConfig {
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(300),
        ..LeaseConfig::new(NAMESPACE, name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_leads_at_a_time() {
    let (_control_plane, client) = cluster().await;
    let leaders = Arc::new(AtomicUsize::new(0));
    let lead = |shutdown: CancellationToken| {
        let (client, leaders) = (client.clone(), leaders.clone());
        tokio::spawn(run_when_leader(
            client,
            Some(short_lease("lock")),
            shutdown,
            async move |until: CancellationToken| {
                assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "two lead at once");
                until.cancelled().await;
                leaders.fetch_sub(1, Ordering::SeqCst);
            },
        ))
    };
    let (first_ends, second_ends) = (CancellationToken::new(), CancellationToken::new());
    let first = lead(first_ends.clone());
    let leads = || async { leaders.load(Ordering::SeqCst) == 1 };
    eventually("the first leads", leads).await;
    let second = lead(second_ends.clone());
    // Longer than the lease duration: the first leader renews it.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(leaders.load(Ordering::SeqCst), 1);

    first_ends.cancel();
    first.await.unwrap().unwrap();
    eventually("the second leads after the release", leads).await;

    // Another process takes the lease: the leader must stop and report the loss.
    let api: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let patch = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}});
    api.patch("lock", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let lost = second.await.unwrap().unwrap_err();
    assert!(matches!(lost, LeaseError::Lost { .. }));
    assert_eq!(leaders.load(Ordering::SeqCst), 0);
    let spec = api.get("lock").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("thief"));

    // Shutdown before leading: the work does not run, and the lease is not held.
    let ends = CancellationToken::new();
    let waiting = lead(ends.clone());
    tokio::time::sleep(Duration::from_millis(500)).await;
    ends.cancel();
    assert!(waiting.await.unwrap().unwrap().is_none());
}

/// Returns the notes of the election events of a lease.
async fn election_notes(client: &Client, lease: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let found = events.list(&ListParams::default()).await.unwrap();
    let about = |event: &Event| {
        let object = event.regarding.as_ref();
        object.and_then(|object| object.name.as_deref()) == Some(lease)
            && object.and_then(|object| object.kind.as_deref()) == Some("Lease")
            && event.reason.as_deref() == Some("LeaderElection")
    };
    let notes = found.items.into_iter().filter(about);
    notes.filter_map(|event| event.note).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_succeeded_when_the_lease_expires() {
    let (_control_plane, client) = cluster().await;
    let lead = |config: &LeaseConfig, shutdown: &CancellationToken| {
        tokio::spawn(run_when_leader(
            client.clone(),
            Some(config.clone()),
            shutdown.clone(),
            async |until: CancellationToken| until.cancelled().await,
        ))
    };
    let (one, other) = (short_lease("takeover"), short_lease("takeover"));
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let holder = async || {
        let lease = leases.get_opt("takeover").await.unwrap();
        lease.and_then(|lease| lease.spec?.holder_identity)
    };
    let ends = CancellationToken::new();
    let dies = lead(&one, &ends);
    eventually("the first leads", || async {
        holder().await.as_deref() == Some(one.identity.as_str())
    })
    .await;
    let succeeds = lead(&other, &ends);
    // Like kill -9: the lease is not released, and no event is written.
    dies.abort();
    assert!(dies.await.unwrap_err().is_cancelled());
    let died = std::time::Instant::now();
    eventually("the second leads", || async {
        holder().await.as_deref() == Some(other.identity.as_str())
    })
    .await;
    // Only the lower bound matters: earlier, two replicas might lead. The last renewal was at most one retry period
    // before.
    let least = one.lease_duration.saturating_sub(one.retry_period.mul_f64(1.2));
    assert!(died.elapsed() > least, "taken after {:?}", died.elapsed());
    let transitions = leases
        .get("takeover")
        .await
        .unwrap()
        .spec
        .unwrap()
        .lease_transitions;
    assert_eq!(transitions, Some(1));

    // A leader that stops in order writes an event after it released the lease.
    ends.cancel();
    succeeds.await.unwrap().unwrap();
    assert_eq!(holder().await.as_deref(), Some(""));
    let wanted = [
        format!("{} became leader", one.identity),
        format!("{} became leader", other.identity),
        format!("{} stopped leading", other.identity),
    ];
    eventually("the events are there", || async {
        let notes = election_notes(&client, "takeover").await;
        wanted.iter().all(|note| notes.contains(note))
    })
    .await;
    let never = format!("{} stopped leading", one.identity);
    assert!(!election_notes(&client, "takeover").await.contains(&never));
}

/// The candidate polls too seldom to notice the release: it watches the lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_released_lease_is_acquired_at_once() {
    let (_control_plane, client) = cluster().await;
    let config = || LeaseConfig {
        lease_duration: Duration::from_mins(10),
        renew_deadline: Duration::from_mins(5),
        retry_period: Duration::from_mins(2),
        ..LeaseConfig::new(NAMESPACE, "watched")
    };
    let lead = |config: &LeaseConfig, shutdown: &CancellationToken| {
        tokio::spawn(run_when_leader(
            client.clone(),
            Some(config.clone()),
            shutdown.clone(),
            async |until: CancellationToken| until.cancelled().await,
        ))
    };
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let holder = async || {
        let lease = leases.get_opt("watched").await.unwrap();
        lease.and_then(|lease| lease.spec?.holder_identity)
    };
    let configs = [config(), config(), config()];
    let ends = [
        CancellationToken::new(),
        CancellationToken::new(),
        CancellationToken::new(),
    ];
    let first = lead(&configs[0], &ends[0]);
    eventually("the first leads", || async {
        holder().await.as_ref() == Some(&configs[0].identity)
    })
    .await;
    let others = [lead(&configs[1], &ends[1]), lead(&configs[2], &ends[2])];
    // Both have seen the lease held by the first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    ends[0].cancel();
    first.await.unwrap().unwrap();
    let released = std::time::Instant::now();
    let mut waiting = vec![1, 2];
    while !waiting.is_empty() {
        let mut leader = None;
        while leader.is_none() {
            let now = holder().await;
            leader = waiting
                .iter()
                .position(|place| now.as_ref() == Some(&configs[*place].identity));
            assert!(released.elapsed() < Duration::from_secs(30), "nobody leads");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let leader = waiting.remove(leader.unwrap());
        ends[leader].cancel();
    }
    for other in others {
        other.await.unwrap().unwrap();
    }

    // A deleted lease is free as well.
    let again = CancellationToken::new();
    let (fourth, fifth) = (config(), config());
    let leading = lead(&fourth, &again);
    eventually("the fourth leads", || async {
        holder().await.as_ref() == Some(&fourth.identity)
    })
    .await;
    let candidate = lead(&fifth, &again);
    tokio::time::sleep(Duration::from_secs(1)).await;
    leases
        .delete("watched", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    eventually("the fifth leads", || async {
        holder().await.as_ref() == Some(&fifth.identity)
    })
    .await;
    again.cancel();
    leading.await.unwrap().unwrap();
    candidate.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_agree_on_one_certificate_and_metrics_ask_who_reads() {
    let (control_plane, client) = cluster().await;
    assert!(own_ca(&client, NAMESPACE).await.unwrap().is_none());
    let ends = CancellationToken::new();
    let own = own_certificate();
    let replicas = futures::future::join_all(
        (0..4).map(|_| ServingCert::own(client.clone(), own.clone(), ends.clone())),
    )
    .await;
    let serving = replicas.into_iter().map(Result::unwrap).next().unwrap();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let before = secrets.get(CATALOGD_OWN_CERT).await.unwrap();
    let ca = own_ca(&client, NAMESPACE).await.unwrap().unwrap();
    assert_eq!(
        ca.matches("BEGIN CERTIFICATE").count(),
        1,
        "one was made, the others adopted it"
    );

    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address: SocketAddr = ([127, 0, 0, 1], port).into();
    let (registry, metrics_client, token) = (metrics::Registry::new(), client.clone(), ends.clone());
    let served = tokio::spawn(async move {
        let address = address.to_string().parse().unwrap();
        metrics::serve(address, registry, metrics_client, &serving, token).await
    });
    let http = olm_harness::tls::http_client(Some(&ca)).unwrap();
    let url = format!("https://localhost:{port}/metrics");
    let answer = async |token: Option<&str>| {
        let mut request = http.get(&url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request
            .send()
            .await
            .map(|answer| answer.status().as_u16())
            .unwrap_or_default()
    };
    eventually("metrics are served", || async { answer(None).await == 401 }).await;
    assert_eq!(answer(Some("nonsense")).await, 401);

    let reader = token_of(&client, "reader").await;
    assert_eq!(answer(Some(&reader)).await, 403);
    let scraper = token_of(&client, "scraper").await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "scraper"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "scraper"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scraper"},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": NAMESPACE}]});
    let params = PostParams::default();
    let _: k8s_openapi::api::rbac::v1::ClusterRole = Api::all(client.clone())
        .create(&params, &serde_json::from_value(role).unwrap())
        .await
        .unwrap();
    let _: k8s_openapi::api::rbac::v1::ClusterRoleBinding = Api::all(client.clone())
        .create(&params, &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    wait_for_access(&http, &url, &scraper).await;

    // A broken Secret is repaired, and the former authority stays trusted.
    let mut broken = before.clone();
    broken
        .data
        .as_mut()
        .unwrap()
        .insert("tls.key".to_owned(), ByteString(b"broken".to_vec()));
    secrets
        .replace(CATALOGD_OWN_CERT, &params, &broken)
        .await
        .unwrap();
    ServingCert::own(client.clone(), own, ends.clone()).await.unwrap();
    let both = own_ca(&client, NAMESPACE).await.unwrap().unwrap();
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 2);
    assert!(both.contains(ca.trim()));

    ends.cancel();
    served.await.unwrap().unwrap();
    drop(control_plane);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_right_to_create_its_secret_names_the_next_step() {
    let (control_plane, client) = cluster().await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "keeper"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"],
            "resourceNames": [CATALOGD_OWN_CERT]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "keeper"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "keeper"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "keeper"}]});
    let params = PostParams::default();
    let _: k8s_openapi::api::rbac::v1::Role = Api::namespaced(client.clone(), NAMESPACE)
        .create(&params, &serde_json::from_value(role).unwrap())
        .await
        .unwrap();
    let _: k8s_openapi::api::rbac::v1::RoleBinding = Api::namespaced(client.clone(), NAMESPACE)
        .create(&params, &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    let keeper = control_plane.client_for("keeper", None).await.unwrap();
    let ends = CancellationToken::new();
    let own = own_certificate();
    let issue = || ServingCert::own(keeper.clone(), own.clone(), ends.clone());
    let missing = || async { matches!(issue().await, Err(TlsError::SecretMissing { .. })) };
    eventually("the Secret is missing", missing).await;

    let empty: Secret = serde_json::from_value(json!({"metadata": {"name": CATALOGD_OWN_CERT}})).unwrap();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.create(&params, &empty).await.unwrap();
    issue().await.unwrap();
    assert!(own_ca(&client, NAMESPACE).await.unwrap().is_some());
    ends.cancel();
}

fn own_certificate() -> OwnCertificate {
    OwnCertificate {
        namespace: NAMESPACE.to_owned(),
        secret: CATALOGD_OWN_CERT.to_owned(),
        names: vec!["localhost".to_owned()],
        labels: BTreeMap::new(),
    }
}

async fn wait_for_access(http: &reqwest::Client, url: &str, token: &str) {
    // Refusals are cached for some seconds.
    for _ in 0..100 {
        let answer = http.get(url).bearer_auth(token).send().await.unwrap();
        if answer.status().is_success() {
            let text = answer.text().await.unwrap();
            assert!(text.contains("process_start_time_seconds"), "{text}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    panic!("the scraper never got access");
}

async fn token_of(client: &Client, name: &str) -> String {
    use k8s_openapi::api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::ServiceAccount,
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let account = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec::default()),
        ..TokenRequest::default()
    };
    let issued = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .unwrap();
    issued.status.unwrap().token.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_reach_the_object() {
    let (_control_plane, client) = cluster().await;
    let object = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(NAMESPACE.to_owned()),
        ..ObjectReference::default()
    };
    Events::new(client.clone(), "test-controller").warning(object, "Blocked", "Resolve", "no such package");
    let api: Api<Event> = Api::all(client);
    eventually("the event is there", || async {
        let list = api.list(&ListParams::default()).await.unwrap();
        list.items
            .iter()
            .any(|event| event.reason.as_deref() == Some("Blocked"))
    })
    .await;
}

async fn eventually<Fut: Future<Output = bool>>(what: &str, ready: impl Fn() -> Fut) {
    for _ in 0..200 {
        if ready().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not in time: {what}");
}
