//! `kubectl olm ui` about a real extension: its key, its pages, and an upgrade while somebody looks.

mod browser;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use kube::Api;
use kube::api::{Patch, PatchParams};
use olm_api::ClusterExtension;
use olm_harness::eventually;
use reqwest::header::{CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{PATIENCE, World};

pub(super) use browser::shows_the_pages;

/// The running command, as a browser that knows its key.
struct Ui {
    _process: Child,
    http: Client,
    base: String,
    key: String,
    cookie: String,
}

impl Ui {
    async fn start(world: &World) -> Result<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kubectl-olm"))
            .args(["ui", "--no-open", "--plain-http-registry", &world.registry.host()])
            .env("KUBECONFIG", world.plane.kubeconfig())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lines = process.stderr.take().context("no standard error")?;
        let mut lines = BufReader::new(lines).lines();
        let line = timeout(PATIENCE, lines.next_line()).await??.unwrap_or_default();
        let (_, address) = line.split_once("on http://").context(line.clone())?;
        let (host, key) = address.split_once("/?key=").context(line.clone())?;
        let http = Client::builder().redirect(Policy::none()).build()?;
        let base = format!("http://{host}");
        let first = http.get(format!("{base}/?key={key}")).send().await?;
        ensure!(first.status() == StatusCode::SEE_OTHER, "{first:?}");
        ensure!(first.headers()[LOCATION] == "/extensions.html", "{first:?}");
        let cookie = first.headers()[SET_COOKIE].to_str()?.to_owned();
        ensure!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self {
            _process: process,
            http,
            base,
            key: key.to_owned(),
            cookie,
        })
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the address that the command prints.
    fn entry(&self) -> String {
        self.address(&format!("/?key={}", self.key))
    }

    fn ask(&self, path: &str) -> RequestBuilder {
        self.http.get(self.address(path))
    }

    async fn answer(&self, path: &str) -> Result<Response> {
        Ok(self.ask(path).header(COOKIE, &self.cookie).send().await?)
    }

    async fn page(&self, path: &str) -> Result<String> {
        let answer = self.answer(path).await?;
        let status = answer.status();
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str()?.to_owned();
        ensure!(policy.starts_with("default-src 'none'; "), "{policy}");
        let text = answer.text().await?;
        ensure!(status == StatusCode::OK, "{path}: {status}: {text}");
        Ok(text)
    }

    /// Checks that a page has all of some texts.
    async fn shows(&self, path: &str, texts: &[&str]) -> Result<()> {
        let page = self.page(path).await?;
        for text in texts {
            ensure!(page.contains(text), "{path} has no {text:?}: {page}");
        }
        Ok(())
    }
}

/// Checks the pages while 1.0.0 is installed and 1.1.0 is held back by the range.
pub(super) async fn shows_what_is_installed(world: &World) -> Result<()> {
    let ui = Ui::start(world).await?;
    refuses_strangers(&ui).await?;
    let extension = ["kite", "1.0.0", "kites", "Ready", "extensions/kite.html"];
    ui.shows("/extensions.html", &extension).await?;
    let parts = [
        "CustomResourceDefinition kites.example.com",
        "Deployment kites/kite",
        "healthy",
        "Installed",
        "outside of the requested range",
        "1.1.0",
        "kite-1",
        "../packages/kites/kite.html",
        "../plans/kite.html",
        "what-if.html?package=kite&amp;installed=kite.v1.0.0%401.0.0&amp;range=1.0.0",
    ];
    ui.shows("/extensions/kite.html", &parts).await?;
    ui.shows("/plans/kite.html", &["kite.v1.0.0", "Verdict"]).await?;
    ui.shows(
        "/index.html?q=kite",
        &["1 package for “kite”", "packages/kites/kite.html"],
    )
    .await?;
    ui.shows("/index.html?q=anchor", &["0 packages"]).await?;
    ui.shows("/catalogs.html", &["kites", "1 catalog"]).await?;
    let here = ["Installed: 1.0.0 as", "graphs/kites/kite.svg?extension=kite"];
    ui.shows("/packages/kites/kite.html", &here).await?;
    ui.shows("/graphs/kites/kite.svg?extension=kite", &["<svg", "installed"])
        .await?;
    let free =
        "/what-if.html?package=kite&installed=kite.v1.0.0%401.0.0&range=&channels=&policy=CatalogProvided";
    ui.shows(free, &["kite.v1.1.0", "chosen"]).await?;
    let wrong = "/what-if.html?package=kite&range=%3E%3E1";
    ui.shows(wrong, &["Not shown: ", "is malformed"]).await?;
    ui.shows("/what-if.html?package=anchor", &["anchor", "No bundle"])
        .await?;
    ui.shows("/cluster-upgrade.html", &["Cluster upgrade", "From "])
        .await?;
    ui.shows("/cluster-upgrade.html?to=soon", &["is not MAJOR.MINOR"])
        .await?;
    for absent in [
        "/extensions/none.html",
        "/packages/kites/none.html",
        "/none",
        "/icons/../key",
    ] {
        let answer = ui.answer(absent).await?;
        ensure!(answer.status() == StatusCode::NOT_FOUND, "{absent}: {answer:?}");
    }
    follows(world, &ui).await
}

/// Checks that the browser's program gets a file that leads to the address, and not the key, which others could read in its arguments.
pub(super) async fn opens_a_browser(world: &World) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let program = dir.path().join("xdg-open");
    let told = dir.path().join("told");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > {0}.new; cat \"$1\" >> {0}.new; stat -c %a \"$1\" >> {0}.new; mv {0}.new {0}\n",
        told.display()
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH")?);
    let _process = Command::new(env!("CARGO_BIN_EXE_kubectl-olm"))
        .arg("ui")
        .env("KUBECONFIG", world.plane.kubeconfig())
        .env("PATH", path)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    eventually(PATIENCE, "the program is started", async || {
        let text = std::fs::read_to_string(&told)?;
        let (arguments, page) = text.split_once('\n').context("no page")?;
        ensure!(
            arguments.contains("/kubectl-olm-") && !arguments.contains("key="),
            "{text}"
        );
        ensure!(
            page.contains("0; url=http://127.0.0.1:") && page.contains("/?key="),
            "{text}"
        );
        ensure!(page.trim_end().ends_with("600"), "{text}");
        Ok(())
    })
    .await
}

/// Checks that only requests to this host with the key are answered, and none that would write.
async fn refuses_strangers(ui: &Ui) -> Result<()> {
    for path in [
        "/extensions.html",
        "/extensions/kite.html",
        "/ui.js",
        "/events",
        "/?key=0123",
    ] {
        let answer = ui.ask(path).send().await?;
        ensure!(answer.status() == StatusCode::UNAUTHORIZED, "{path}: {answer:?}");
    }
    let foreign = ui
        .ask("/extensions.html")
        .header(COOKIE, &ui.cookie)
        .header(HOST, "example.org");
    let foreign = foreign.send().await?;
    ensure!(foreign.status() == StatusCode::MISDIRECTED_REQUEST, "{foreign:?}");
    let write = ui.http.post(format!("{}/extensions.html", ui.base));
    let write = write.header(COOKIE, &ui.cookie).send().await?;
    ensure!(write.status() == StatusCode::METHOD_NOT_ALLOWED, "{write:?}");
    Ok(())
}

/// Checks that an open page hears of a change.
async fn follows(world: &World, ui: &Ui) -> Result<()> {
    let mut events = ui.answer("/events").await?.bytes_stream();
    let mut next = async || -> Result<()> {
        let part = timeout(PATIENCE, events.next())
            .await?
            .context("the stream ended")??;
        let text = String::from_utf8(part.to_vec())?;
        ensure!(text.contains("event: change"), "{text}");
        Ok(())
    };
    // The state at the start.
    next().await?;
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    let change = json!({"metadata": {"labels": {"watched": "yes"}}});
    api.patch("kite", &PatchParams::default(), &Patch::Merge(change))
        .await?;
    next().await
}
