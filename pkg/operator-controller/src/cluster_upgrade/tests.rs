use http::{Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use olm_status::cluster_upgrade::Installed;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::cluster_extension::Writers;

fn record(unread: Option<&str>) -> ExtensionRecord {
    ExtensionRecord {
        unread: unread.map(str::to_owned),
        ..ExtensionRecord::default()
    }
}

fn limited(extension: &str, properties: &str) -> ExtensionRecord {
    ExtensionRecord {
        uid: format!("uid of {extension}"),
        bundle: Some(Installed {
            extension: extension.to_owned(),
            properties: Some(properties.to_owned()),
            ..Installed::default()
        }),
        ..ExtensionRecord::default()
    }
}

#[test]
fn an_extension_that_cannot_be_judged_blocks_by_name() {
    let minor = Minor { major: 4, minor: 18 };
    let existing = ["fine", "odd"].map(|name| (name.to_owned(), false)).into();
    let none = BTreeMap::new();
    let mut known = BTreeMap::from([("fine".to_owned(), record(None))]);
    assert!(judge(minor, &existing, &known, &none).verdict.upgradeable());
    known.insert("odd".to_owned(), record(Some("the Helm release is cut off")));
    let judged = judge(minor, &existing, &known, &none);
    assert_eq!(
        judged.verdict.upgradeable_condition(),
        (
            "InstalledOLMOperators_FailureGettingExtensionMetadata".to_owned(),
            "InstalledOLMOperatorsUpgradeable: error returning the last deployed release for odd: the Helm release is cut off".to_owned()
        )
    );
    assert_eq!(judged.blocked.keys().collect::<Vec<_>>(), ["odd"]);
}

#[test]
fn an_extension_that_is_gone_neither_blocks_nor_gets_an_event() {
    let minor = Minor { major: 4, minor: 18 };
    let limit = "[{\"type\":\"olm.maxOpenShiftVersion\",\"value\":\"4.18\"}]";
    let known: BTreeMap<_, _> = ["gone", "stays"]
        .map(|name| (name.to_owned(), limited(name, limit)))
        .into();
    let before = known.keys().map(|name| (name.clone(), String::new())).collect();
    let judged = judge(minor, &[("stays".to_owned(), true)].into(), &known, &before);
    assert_eq!(judged.blocked.keys().collect::<Vec<_>>(), ["stays"]);
    assert_eq!(
        judged.uids.into_iter().collect::<Vec<_>>(),
        [("stays".to_owned(), "uid of stays".to_owned())]
    );
}

/// A judge with its API server on plain Kubernetes, which records the paths of requests.
struct World {
    judge: Judge,
    writers: Writers,
    inventory: Inventory,
    requests: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&requests);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let (status, answer) = if path == "/version" {
                (
                    200,
                    json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0", "gitCommit": "", "gitTreeState": "",
                    "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
                )
            } else {
                (
                    404,
                    json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}),
                )
            };
            recorded.lock().push(path);
            async move {
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(answer).unwrap())
            }
        });
        let (stores, writers) = Stores::new();
        let inventory = Inventory::default();
        let client = Client::new(service, "default");
        Self {
            judge: Judge::new(client, inventory.clone(), Arc::new(stores)),
            writers,
            inventory,
            requests,
        }
    }

    fn see(&mut self, event: Event<serde_json::Value>) {
        let read = |object| serde_json::from_value(object).unwrap();
        let event = match event {
            Event::Init => Event::Init,
            Event::InitApply(object) => Event::InitApply(read(object)),
            Event::InitDone => Event::InitDone,
            Event::Apply(object) => Event::Apply(read(object)),
            Event::Delete(object) => Event::Delete(read(object)),
        };
        self.writers.extensions.apply_watcher_event(&event);
    }
}

fn extension(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_verdict_waits_for_the_first_list_and_for_every_extension_of_it() {
    let mut world = World::new();
    world.inventory.note("a", record(None));
    assert!(!world.judge.tell().await.unwrap(), "there is no list yet");
    world.see(Event::Init);
    world.see(Event::InitApply(extension("a")));
    assert!(!world.judge.tell().await.unwrap(), "the list is not complete");
    world.see(Event::InitApply(extension("b")));
    world.see(Event::InitDone);
    assert!(!world.judge.tell().await.unwrap(), "b was not reconciled");
    assert_eq!(world.requests.lock().len(), 0);
    world.inventory.note("b", record(None));
    assert!(world.judge.tell().await.unwrap());

    world.see(Event::Apply(extension("c")));
    assert!(!world.judge.tell().await.unwrap(), "c was not reconciled");
    let deleted = json!({"metadata": {"name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.see(Event::Apply(deleted));
    assert!(world.judge.tell().await.unwrap(), "a removal records nothing");
}

#[tokio::test(start_paused = true)]
async fn verdicts_ask_for_the_version_once_a_minute_and_list_no_extensions() {
    let mut world = World::new();
    world.see(Event::Init);
    for number in 0..200 {
        world.see(Event::InitApply(extension(&number.to_string())));
        world.inventory.note(&number.to_string(), record(None));
    }
    world.see(Event::InitDone);
    for _ in 0..50 {
        assert!(world.judge.tell().await.unwrap());
    }
    let look = ["/apis/config.openshift.io/v1/clusterversions/version", "/version"];
    assert_eq!(*world.requests.lock(), look);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let pause = world.judge.next().await;
    assert_eq!(world.requests.lock().len(), 2);
    tokio::time::sleep(pause).await;
    let pause = world.judge.next().await;
    assert_eq!(pause, cluster::RESYNC);
    assert_eq!(*world.requests.lock(), [look, look].concat());
}
