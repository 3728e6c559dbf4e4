//! Tests that the real programs run as in a cluster: leases, self-managed certificates, authorized metrics, logs and shutdown.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    coordination::v1::Lease,
    core::v1::{Secret, ServiceAccount},
};
use kube::api::{Api, PostParams};
use olm_harness::controllers::{Controller, SYSTEM_NAMESPACE};
use olm_harness::ports::Port;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, OperatorController, Registry, eventually, install_crds, tls,
};
use olm_runtime::metrics::Description;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn leases_metrics_and_shutdown_as_in_a_cluster() {
    let control_plane = ControlPlane::start().await.unwrap();
    let registry = Registry::start().await.unwrap();
    let client = control_plane.client();
    install_crds(&client).await.unwrap();
    let (catalogd_port, operator_port) = (Port::reserve().unwrap(), Port::reserve().unwrap());
    let options = |port: &Port| ControllerOptions {
        args: vec![
            "--leader-elect".to_owned(),
            "--log-format=json".to_owned(),
            "--tls-profile=modern".to_owned(),
            format!("--metrics-bind-address={}", port.address()),
        ],
        ..ControllerOptions::default()
    };
    let mut catalogd = Catalogd::start_with(&control_plane, &registry, options(&catalogd_port))
        .await
        .unwrap();
    let mut operator = OperatorController::start_with(&control_plane, &registry, options(&operator_port))
        .await
        .unwrap();
    let token = reader(&client).await.unwrap();

    let common = [
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "process_open_fds ",
        "olm_build_info{",
        "# TYPE rest_client_requests_total counter",
        "rest_client_requests_total{code=\"200\",method=\"GET\"",
    ];
    let of_catalogd = [
        "leader_election_master_status{name=\"catalogd-operator-lock\"} 1",
        "controller_runtime_max_concurrent_reconciles{controller=\"catalogd-clustercatalog-controller\"} 4",
        "controller_runtime_reconcile_total{controller=\"catalogd-clustercatalog-controller\",result=\"success\"} 0",
        "catalogd_catalogs_served 0",
        "catalogd_content_bytes{form=\"index\"} 0",
        "catalogd_unpack_bytes 0",
        "catalogd_cache_available_bytes ",
    ];
    let of_operator = [
        "leader_election_master_status{name=\"9c4404e7.operatorframework.io\"} 1",
        "controller_runtime_reconcile_errors_total{controller=\"controller-operator-cluster-extension-controller\"} 0",
        "controller_runtime_active_workers{controller=\"cluster-extension-revision\"} 0",
    ];
    for (secret, port, own) in [
        (
            "catalogd-service-own-cert",
            &catalogd_port,
            of_catalogd.as_slice(),
        ),
        (
            "operator-controller-service-own-cert",
            &operator_port,
            of_operator.as_slice(),
        ),
    ] {
        eventually(TIMEOUT, "the metrics are complete", async || {
            let text = scrape(&client, secret, port, &token).await?;
            for line in common.iter().chain(own) {
                ensure!(text.contains(line), "{line} is not in\n{text}");
            }
            ensure!(!text.contains("# EOF"), "this is OpenMetrics");
            documented(&text)
        })
        .await
        .unwrap();
    }

    for (lease, controller) in [
        ("catalogd-operator-lock", catalogd.controller()),
        ("9c4404e7.operatorframework.io", operator.controller()),
    ] {
        shuts_down_gracefully(&client, lease, controller).await.unwrap();
    }
}

/// Tests that a second replica leads at once after the first one has ended regularly, and after the duration of the lease if the
/// leader was killed. With upstream's times, the second part would take more than two minutes.
#[tokio::test(flavor = "multi_thread")]
async fn another_replica_leads_after_a_release_and_after_a_crash() {
    let control_plane = ControlPlane::start().await.unwrap();
    let registry = Registry::start().await.unwrap();
    let client = control_plane.client();
    install_crds(&client).await.unwrap();
    let options = |name: &str| ControllerOptions {
        args: vec!["--leader-elect".to_owned()],
        envs: vec![("POD_NAME".to_owned(), name.to_owned())],
        ..ControllerOptions::default()
    };
    let start = async |name: &str| {
        OperatorController::start_with(&control_plane, &registry, options(name))
            .await
            .unwrap()
    };
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let leads = async |name: &str, limit: Duration| {
        let started = std::time::Instant::now();
        eventually(limit, &format!("{name} leads"), async || {
            let spec = leases.get("9c4404e7.operatorframework.io").await?.spec;
            let spec = spec.context("the lease is empty")?;
            let holder = spec.holder_identity.unwrap_or_default();
            ensure!(holder.starts_with(&format!("{name}_")), "held by {holder:?}");
            ensure!(
                spec.lease_duration_seconds == Some(15),
                "{:?}",
                spec.lease_duration_seconds
            );
            Ok(())
        })
        .await
        .unwrap();
        started.elapsed()
    };

    let mut first = start("first").await;
    leads("first", TIMEOUT).await;
    let mut second = start("second").await;
    // The limit is generous, because a shared machine may pause processes for seconds. With upstream's interval of polls, it
    // would take 26 s.
    first.controller().process().unwrap().signal("TERM").unwrap();
    let took = leads("second", Duration::from_secs(15)).await;
    eprintln!("led {took:?} after TERM");

    let _third = start("third").await;
    second.controller().process().unwrap().signal("KILL").unwrap();
    let took = leads("third", Duration::from_mins(1)).await;
    eprintln!("led {took:?} after KILL");
}

/// Checks that every scraped sample has the name and the labels of its description. The descriptions are the source of
/// docs/reference/metrics.md.
fn documented(text: &str) -> Result<()> {
    let descriptions: Vec<Description> = olm_runtime::metric_descriptions()
        .chain(olm_catalogd::metrics::descriptions())
        .chain(olm_operator_controller::metric_descriptions())
        .collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let description = descriptions
            .iter()
            .find(|description| {
                let rest = name.strip_prefix(&description.exported());
                matches!(rest, Some("" | "_bucket" | "_sum" | "_count"))
            })
            .with_context(|| format!("no description of {name}"))?;
        let labels = line
            .split_once('{')
            .and_then(|(_, rest)| rest.rsplit_once('}'))
            .map_or("", |(labels, _)| labels);
        let labels: Vec<&str> = labels
            .split("\",")
            .filter_map(|label| label.split_once("=\""))
            .map(|(label, _)| label)
            .filter(|label| *label != "le")
            .collect();
        ensure!(
            labels == description.labels,
            "{line}: described with {:?}",
            description.labels
        );
    }
    Ok(())
}

/// Sends TERM. Checks that the lease is released, the process exits with success, and every line of its log is JSON.
async fn shuts_down_gracefully(
    client: &kube::Client,
    lease: &str,
    controller: &mut Controller,
) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let log = controller.log();
    let process = controller.process().context("it runs")?;
    process.signal("TERM")?;
    let ended = eventually(TIMEOUT, "the process ends", async || {
        process.exited().context("still running")
    })
    .await?;
    ensure!(ended.success(), "{ended}");
    let holder = leases
        .get(lease)
        .await?
        .spec
        .and_then(|spec| spec.holder_identity);
    ensure!(
        holder.as_deref().is_none_or(str::is_empty),
        "{lease} is held by {holder:?}"
    );
    for line in std::fs::read_to_string(log)?.lines() {
        let _: Value = serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
    }
    Ok(())
}

async fn scrape(client: &kube::Client, secret: &str, port: &Port, token: &str) -> Result<String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let data = secrets.get(secret).await?.data.context("the Secret is empty")?;
    let ca = std::str::from_utf8(&data.get("ca.crt").context("no ca.crt")?.0)?.to_owned();
    let url = format!("https://localhost:{}/metrics", port.number());
    let answer = tls::http_client(Some(&ca))?
        .get(url)
        .bearer_auth(token)
        .send()
        .await?;
    Ok(answer.error_for_status()?.text().await?)
}

/// Creates an account that may read metrics, and returns its token.
async fn reader(client: &kube::Client) -> Result<String> {
    let params = PostParams::default();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    accounts
        .create(
            &params,
            &serde_json::from_value(json!({"metadata": {"name": "scraper"}}))?,
        )
        .await?;
    let role = json!({"metadata": {"name": "scraper"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    Api::<ClusterRole>::all(client.clone())
        .create(&params, &serde_json::from_value(role)?)
        .await?;
    let binding = json!({
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scraper"},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": SYSTEM_NAMESPACE}],
    });
    Api::<ClusterRoleBinding>::all(client.clone())
        .create(&params, &serde_json::from_value(binding)?)
        .await?;
    let request = TokenRequest {
        spec: Some(TokenRequestSpec::default()),
        ..TokenRequest::default()
    };
    let issued = accounts
        .create_token_request("scraper", &params, &request)
        .await?;
    issued.status.and_then(|status| status.token).context("no token")
}
