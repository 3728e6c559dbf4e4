//! A real browser: Chromium, driven by chromedriver.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use olm_harness::eventually;
use serde_json::{Value, json};
use tokio::process::Child;
use url::{ParseError, Url};

/// Exit code of `hack/browser.sh` if the machine cannot have a browser.
const CANNOT: i32 = 3;
/// Time in which chromedriver begins to listen.
const START: Duration = Duration::from_secs(30);
/// Time in which a page loads that a click asks for.
const LOAD: Duration = Duration::from_secs(30);
/// Size of the window in pixels.
const SIZE: &str = "--window-size=1280,1000";

/// A browser with one window.
pub(crate) struct Chromium {
    driver: Child,
    pub(crate) client: Client,
    axe: String,
}

/// A command of chromedriver that the standard does not have.
#[derive(Debug)]
struct Vendor {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Vendor {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

/// Installs a browser, unless the machine has one; none if it cannot have one.
fn install(dir: &Path) -> Result<Option<()>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/browser.sh");
    let status = Command::new(script).arg(dir).status()?;
    match status.code() {
        Some(0) => Ok(Some(())),
        Some(CANNOT) => Ok(None),
        _ => bail!("hack/browser.sh: {status}"),
    }
}

/// Returns the folder of what the test leaves: axe, and the screenshots.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser")
}

impl Chromium {
    /// Starts a browser; none if the machine cannot have one.
    pub(crate) async fn start() -> Result<Option<Self>> {
        Self::start_with(&[]).await
    }

    /// Variant of [`Chromium::start`] with further arguments.
    pub(crate) async fn start_with(more: &[&str]) -> Result<Option<Self>> {
        let dir = folder();
        let prepared = dir.clone();
        if tokio::task::spawn_blocking(move || install(&prepared))
            .await??
            .is_none()
        {
            return Ok(None);
        }
        let axe = std::fs::read_to_string(dir.join("axe.min.js"))?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let driver = tokio::process::Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        // The pages are those of this machine; without a sandbox the browser also runs as root in a container.
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            SIZE,
        ];
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        let options = json!({"goog:chromeOptions": {"args": args}, "goog:loggingPrefs": {"browser": "ALL"},
            // A dialog that a page opens stays until a test looks.
            "unhandledPromptBehavior": "ignore"});
        let options = options.as_object().cloned().unwrap_or_default();
        let address = format!("http://127.0.0.1:{port}/");
        let client = eventually(START, "chromedriver listens", async || {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            builder.capabilities(options.clone());
            Ok(builder.connect(&address).await?)
        })
        .await?;
        Ok(Some(Self { driver, client, axe }))
    }

    /// Chooses light or dark pages.
    pub(crate) async fn prefer(&self, scheme: &str) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let body = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        let path = "goog/cdp/execute";
        self.client.issue_cmd(Vendor { path, body }).await?;
        Ok(())
    }

    /// Checks that the browser has complained of nothing since the last check: no violation of the policy, no error of the script.
    pub(crate) async fn assert_quiet(&self, page: &str) -> Result<()> {
        let body = json!({"type": "browser"});
        let log = self.client.issue_cmd(Vendor { path: "se/log", body }).await?;
        let entries = log.as_array().context("no log")?;
        // The browser also tells what it did by itself, such as to clear its cache.
        let told = |entry: &&Value| !(entry["level"] == "INFO" && entry["source"] == "other");
        let entries: Vec<&Value> = entries.iter().filter(told).collect();
        ensure!(entries.is_empty(), "{page}: {log:#}");
        Ok(())
    }

    /// Checks that axe finds nothing that keeps anybody from using the page.
    pub(crate) async fn assert_accessible(&self, page: &str) -> Result<()> {
        let run = format!(
            "{}; const done = arguments[arguments.length - 1]; axe.run(document).then(\
             (found) => done(found.violations.map((one) => [one.id, one.help, one.nodes.map((node) => node.html)])), \
             (error) => done(String(error)));",
            self.axe
        );
        let found = self.client.execute_async(&run, Vec::new()).await?;
        ensure!(found == json!([]), "{page}: {found:#}");
        Ok(())
    }

    /// Writes a picture of the window.
    pub(crate) async fn picture(&self, name: &str) -> Result<()> {
        let picture = self.client.screenshot().await?;
        std::fs::write(folder().join(format!("{name}.png")), picture)?;
        Ok(())
    }

    /// Evaluates an expression in the page.
    pub(crate) async fn value(&self, expression: &str) -> Result<Value> {
        let script = format!("return {expression};");
        Ok(self.client.execute(&script, Vec::new()).await?)
    }

    /// Clicks what leads to another page, and waits until that page is loaded.
    ///
    /// A click returns before the browser leaves the page, so whatever is found until then may belong to the page that goes.
    pub(crate) async fn follow(&self, element: Locator<'_>) -> Result<()> {
        self.value("window.left = true").await?;
        self.client.find(element).await?.click().await?;
        let loaded = "window.left === undefined && document.readyState === 'complete'";
        eventually(LOAD, "the next page is loaded", async || {
            ensure!(self.value(loaded).await? == json!(true));
            Ok(())
        })
        .await
    }

    /// Ends the browser and its driver.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.client.close().await?;
        self.driver.kill().await?;
        Ok(())
    }
}
