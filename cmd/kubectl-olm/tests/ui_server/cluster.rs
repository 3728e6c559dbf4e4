//! The cluster, the server with the rights of the manifests, and accounts of readers.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use olm_api::{ClusterCatalog, ClusterExtension};
use olm_harness::ports::Port;
use olm_harness::{Catalogd, ControlPlane, Registry, catalog_image_from_dir, eventually, install_crds};
use reqwest::header::{AUTHORIZATION, COOKIE};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::PATIENCE;
use crate::common::{run, testdata};

/// Namespace of the server.
pub(crate) const SYSTEM: &str = "olmv1-system";
/// Label of the objects of `config/optional/ui`.
const LABEL: &str = "/metadata/labels/app.kubernetes.io~1name";

/// Control plane, catalogd and server of the pages, with clients.
pub(crate) struct World {
    _server: Child,
    _catalogd: Catalogd,
    registry: Registry,
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) http: reqwest::Client,
    /// Client that speaks HTTP/1.1, in which a request names its host by a header.
    pub(crate) http1: reqwest::Client,
    pub(crate) base: String,
    tokens: Mutex<Vec<String>>,
    log: PathBuf,
    _dir: TempDir,
    _ports: [Port; 2],
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        olm_harness::tls::install_provider();
        let plane = ControlPlane::start().await?;
        let registry = Registry::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        let catalogd = Catalogd::start(&plane, &registry).await?;
        apply_manifests(&client).await?;
        let dir = tempfile::tempdir()?;
        let secret = secret(&client, "catalogd-service-own-cert").await?;
        let authority = dir.path().join("catalogd.crt");
        std::fs::write(&authority, secret)?;
        let own = token(&client, SYSTEM, "olmv1-ui", &[]).await?;
        let kubeconfig = dir.path().join("server.kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_of(&plane, &own)?)?;
        let ports = [Port::reserve()?, Port::reserve()?];
        let log = dir.path().join("log");
        let errors = std::fs::File::create(&log)?;
        let server = Command::new(env!("CARGO_BIN_EXE_kubectl-olm"))
            .arg("ui-server")
            .arg(format!("--bind-address={}", ports[0].address()))
            .arg(format!("--health-probe-bind-address={}", ports[1].address()))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--ca-file={}", authority.display()))
            .arg(format!(
                "--catalogd-address={}",
                catalogd.url().trim_start_matches("https://")
            ))
            .args(["--allowed-host=olm.example.org", "--log-level=debug"])
            .env("XDG_CACHE_HOME", dir.path())
            .env_remove("KUBECONFIG")
            .stdout(Stdio::null())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()?;
        let pem = eventually(PATIENCE, "the server has its certificate", async || {
            secret_of_server(&client).await
        });
        let pem = pem
            .await
            .with_context(|| std::fs::read_to_string(&log).unwrap_or_default())?;
        let roots = reqwest::Certificate::from_pem_bundle(pem.as_bytes())?;
        let builder = || {
            reqwest::Client::builder()
                .no_proxy()
                .tls_certs_only(roots.clone())
                .redirect(Policy::none())
        };
        let world = Self {
            base: format!("https://{}", ports[0].address()),
            http: builder().build()?,
            http1: builder().http1_only().build()?,
            tokens: Mutex::new(vec![own]),
            _server: server,
            _catalogd: catalogd,
            plane,
            client,
            log,
            _dir: dir,
            _ports: ports,
            registry,
        };
        eventually(PATIENCE, "the server answers", async || {
            Ok(world.http.get(world.address("/icon.svg")).send().await?)
        })
        .await?;
        world.publish().await?;
        world.extension("lamp", json!({})).await?;
        Ok(world)
    }

    /// Makes a catalog of the test data and waits until it is served.
    async fn publish(&self) -> Result<()> {
        let registry = &self.registry;
        catalog_image_from_dir(&testdata().join("catalog"))
            .push(registry, "catalogs/catalog:v1")
            .await?;
        let object = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "shop"},
            "spec": {"source": {"type": "Image", "image": {"ref": format!("{}/catalogs/catalog:v1", registry.host())}}},
        });
        let catalogs: Api<ClusterCatalog> = Api::all(self.client.clone());
        let apply = PatchParams::apply("test");
        catalogs.patch("shop", &apply, &Patch::Apply(object)).await?;
        eventually(PATIENCE, "the catalog is served", async || {
            let status = catalogs.get("shop").await?.status.unwrap_or_default();
            let mut conditions = status.conditions.iter().flatten();
            let serving = conditions.any(|one| one.type_ == "Serving" && one.status == "True");
            ensure!(serving, "{:?}", status.conditions);
            Ok(())
        })
        .await
    }

    /// Applies an extension of package lantern. No controller acts on it.
    pub(crate) async fn extension(&self, name: &str, labels: Value) -> Result<()> {
        let object = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": name, "labels": labels},
            "spec": {"namespace": "default", "source": {"sourceType": "Catalog", "catalog": {"packageName": "lantern"}}},
        });
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let apply = PatchParams::apply("test");
        extensions.patch(name, &apply, &Patch::Apply(object)).await?;
        Ok(())
    }

    /// Creates a service account with these roles, and returns a token of it. A role is `ClusterRole/NAME`, or `Role/NAME` in default.
    pub(crate) async fn reader(&self, name: &str, roles: &[&str]) -> Result<String> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "default"}});
        apply(&self.client, account).await?;
        for role in roles {
            let (kind, role) = role.split_once('/').context("no role")?;
            let (binding, metadata) = if kind == "Role" {
                (
                    "RoleBinding",
                    json!({"name": format!("{name}-{role}"), "namespace": "default"}),
                )
            } else {
                ("ClusterRoleBinding", json!({"name": format!("{name}-{role}")}))
            };
            let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": binding, "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]});
            apply(&self.client, object).await?;
        }
        self.token(name, &[]).await
    }

    /// Returns a token of a service account of namespace default.
    pub(crate) async fn token(&self, name: &str, audiences: &[&str]) -> Result<String> {
        let token = token(&self.client, "default", name, audiences).await?;
        if let Ok(mut tokens) = self.tokens.lock() {
            tokens.push(token.clone());
        }
        Ok(token)
    }

    /// Returns a client of the API server with a token of the server's own account.
    pub(crate) async fn client_of_server(&self) -> Result<Client> {
        let token = token(&self.client, SYSTEM, "olmv1-ui", &[]).await?;
        let mut config: Config = self.plane.config();
        config.auth_info = serde_json::from_value(json!({"token": token}))?;
        Ok(Client::try_from(config)?)
    }

    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn ask(&self, path: &str) -> RequestBuilder {
        self.http.get(self.address(path))
    }

    /// Asks for a page with a token.
    pub(crate) async fn with_token(&self, token: &str, path: &str) -> Result<Response> {
        let request = self.ask(path).header(AUTHORIZATION, format!("Bearer {token}"));
        Ok(request.send().await?)
    }

    /// Returns status and text of a page for the bearer of a token.
    pub(crate) async fn page(&self, token: &str, path: &str) -> Result<(u16, String)> {
        let answer = self.with_token(token, path).await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Returns status and text of a page for the session of a cookie.
    pub(crate) async fn page_of_session(&self, cookie: &str, path: &str) -> Result<(u16, String)> {
        let answer = self.ask(path).header(COOKIE, cookie).send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Checks that a page is shown and has all of some texts.
    pub(crate) async fn shows(&self, token: &str, path: &str, texts: &[&str]) -> Result<()> {
        let (status, page) = self.page(token, path).await?;
        ensure!(status == 200, "{path}: {status}: {page}");
        for text in texts {
            ensure!(page.contains(text), "{path} has no {text:?}: {page}");
        }
        Ok(())
    }

    /// Checks that no token is in the log, which has debug lines.
    pub(crate) fn assert_log_without_tokens(&self) -> Result<()> {
        let log = std::fs::read_to_string(&self.log)?;
        ensure!(log.contains("a session begins"), "{log}");
        let Ok(tokens) = self.tokens.lock() else {
            bail!("poisoned")
        };
        for token in tokens.iter() {
            let signature = token.rsplit('.').next().unwrap_or_default();
            ensure!(!log.contains(signature), "a token is in the log: {log}");
        }
        Ok(())
    }
}

/// Applies the objects of `config/optional/ui` that are no workload.
async fn apply_manifests(client: &Client) -> Result<()> {
    let said = run(&["install-controllers", "--export", "--overlay", "ui", "-o", "json"]);
    ensure!(said.code == 0, "{said}");
    let list: Value = serde_json::from_str(&said.out)?;
    let objects = list["items"].as_array().context("no list")?;
    let own: Vec<&Value> = objects
        .iter()
        .filter(|object| object.pointer(LABEL).is_some_and(|label| label == "olmv1-ui"))
        .filter(|object| object["kind"] != "Deployment")
        .collect();
    ensure!(own.len() >= 9, "{own:?}");
    for object in own {
        apply(client, object.clone()).await?;
    }
    Ok(())
}

async fn apply(client: &Client, object: Value) -> Result<()> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .rsplit_once('/')
        .unwrap_or(("", text("/apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    };
    let name = text("/metadata/name").to_owned();
    let params = PatchParams::apply("test");
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .with_context(|| object.to_string())?;
    Ok(())
}

async fn token(client: &Client, namespace: &str, name: &str, audiences: &[&str]) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let audiences = audiences.iter().map(|audience| (*audience).to_owned());
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: Some(audiences.collect()),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await?;
    answer.status.and_then(|status| status.token).context("no token")
}

/// Returns the authority in a Secret of the system namespace.
async fn secret(client: &Client, name: &str) -> Result<String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
    let data = secrets.get(name).await?.data.unwrap_or_default();
    let authority = data.get("ca.crt").context("no authority yet")?;
    Ok(String::from_utf8(authority.0.clone())?)
}

async fn secret_of_server(client: &Client) -> Result<String> {
    secret(client, "olmv1-ui-own-cert").await
}

/// Returns a kubeconfig of the control plane that has a token in the place of the administrator's certificate.
fn kubeconfig_of(plane: &ControlPlane, token: &str) -> Result<String> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(plane.kubeconfig())?)?;
    config["users"] = json!([{"name": "user", "user": {"token": token}}]);
    Ok(config.to_string())
}
