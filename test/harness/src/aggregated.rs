//! A server of a group and version of the Kubernetes API, behind the API server's aggregation layer.
//!
//! The control plane has no nodes, so this server takes the place of a bundle's own: it listens at the cluster IP of the bundle's
//! Service with the certificate of the bundle's Secret, and the API server reaches it as it would reach pods.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, api::DynamicObject, discovery::ApiResource};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

use crate::stub::{Answer, Host, RecordedRequest};
use crate::tls;

/// Address of no host (RFC 5737), for the endpoints of the Service: the API server asks whether there are any.
const NOWHERE: &str = "192.0.2.1";

/// A running server. It stops with its runtime.
#[derive(Debug)]
pub struct AggregatedServer {
    host: Host,
}

impl AggregatedServer {
    /// Serves one namespaced kind, `kind` with its `plural`, of `group` and `version` for a Service with one port. The
    /// certificate is that of Secret `<service>-cert`.
    ///
    /// # Errors
    /// The Service or its certificate is missing, or the address is in use.
    pub async fn start(
        client: &Client,
        namespace: &str,
        service: &str,
        [group, version]: [&str; 2],
        [kind, plural]: [&str; 2],
    ) -> Result<Self> {
        let services: Api<Service> = Api::namespaced(client.clone(), namespace);
        let spec = services
            .get(service)
            .await?
            .spec
            .context("a Service without a spec")?;
        let address: IpAddr = spec.cluster_ip.context("no cluster IP")?.parse()?;
        let port = spec.ports.into_iter().flatten().next().context("no port")?;
        let number = u16::try_from(port.port).context("no port number")?;
        let config = server_config(client, namespace, &format!("{service}-cert")).await?;
        add_endpoints(
            client,
            namespace,
            service,
            port.name.as_deref().unwrap_or_default(),
            number,
        )
        .await?;
        let documents = Documents {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let answer = move |request: &RecordedRequest| documents.answer(&request.path);
        let host = Host::start_at(SocketAddr::new(address, number), Some(config), answer)?;
        Ok(Self { host })
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> usize {
        self.host.requests().len()
    }
}

async fn server_config(client: &Client, namespace: &str, secret: &str) -> Result<ServerConfig> {
    tls::install_provider();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let data = secrets.get(secret).await?.data.context("an empty Secret")?;
    let pem = |key: &str| {
        data.get(key)
            .with_context(|| format!("no {key} in Secret {secret}"))
    };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&pem("tls.crt")?.0).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(&pem("tls.key")?.0)?;
    let config = ServerConfig::builder().with_no_client_auth();
    config
        .with_single_cert(chain, key)
        .context("an unusable certificate")
}

async fn add_endpoints(
    client: &Client,
    namespace: &str,
    service: &str,
    port_name: &str,
    port: u16,
) -> Result<()> {
    let name = format!("{service}-stand-in");
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": [NOWHERE], "conditions": {"ready": true}}],
        "ports": [{"name": port_name, "port": port, "protocol": "TCP"}],
    });
    let kind = ApiResource {
        group: "discovery.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "discovery.k8s.io/v1".to_owned(),
        kind: "EndpointSlice".to_owned(),
        plural: "endpointslices".to_owned(),
    };
    let slices: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let params = PatchParams::apply("test-harness").force();
    slices.patch(&name, &params, &Patch::Apply(&slice)).await?;
    Ok(())
}

/// Answers of the server, by path.
#[derive(Clone)]
struct Documents {
    group: String,
    version: String,
    kind: String,
    plural: String,
}

impl Documents {
    fn answer(&self, path: &str) -> Answer {
        let api_version = format!("{}/{}", self.group, self.version);
        let root = format!("/apis/{api_version}");
        let document = match path.strip_prefix(&root) {
            Some("" | "/") => json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version,
                "resources": [{
                    "name": self.plural, "singularName": self.kind.to_lowercase(), "namespaced": true, "kind": self.kind,
                    "verbs": ["get", "list"],
                }],
            }),
            Some(rest) if rest.split('/').any(|part| part == self.plural) => {
                json!({"kind": format!("{}List", self.kind), "apiVersion": api_version, "metadata": {}, "items": []})
            }
            _ => return response(StatusCode::NOT_FOUND, &Value::Null),
        };
        response(StatusCode::OK, &document)
    }
}

fn response(status: StatusCode, document: &Value) -> Answer {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
