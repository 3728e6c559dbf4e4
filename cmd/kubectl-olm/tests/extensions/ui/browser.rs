//! The pages in a real browser: read, searched, asked, and watched while an upgrade goes on.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use fantoccini::Locator;
use olm_harness::eventually;
use reqwest::StatusCode;
use serde_json::json;

use super::{PATIENCE, Ui, World};
use crate::common::chromium::Chromium;
use crate::common::skipped;

/// Pages with the names of their pictures.
const PAGES: [(&str, &str); 7] = [
    ("extensions", "/extensions.html"),
    ("extension", "/extensions/kite.html"),
    ("plan", "/plans/kite.html"),
    ("packages", "/index.html"),
    ("catalogs", "/catalogs.html"),
    ("package", "/packages/kites/kite.html"),
    ("cluster-upgrade", "/cluster-upgrade.html"),
];

/// Checks the pages while 1.0.0 is installed, and upgrades to 1.1.0 before their eyes.
pub(crate) async fn shows_the_pages(world: &World) -> Result<()> {
    let Some(browser) = Chromium::start().await? else {
        skipped("this machine has no browser, so no page was shown in one");
        return Ok(());
    };
    let ui = Ui::start(world).await?;
    browser.client.goto(&ui.entry()).await?;
    let address = browser.client.current_url().await?;
    ensure!(
        address.path() == "/extensions.html" && address.query().is_none(),
        "{address}"
    );
    let mut links = BTreeSet::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await?;
        for (name, path) in PAGES {
            browser.client.goto(&ui.address(path)).await?;
            browser.assert_accessible(name).await?;
            browser.picture(&format!("{name}-{scheme}")).await?;
            browser.assert_quiet(name).await?;
            let found = browser
                .value("[...document.links].map((link) => link.href)")
                .await?;
            let found: Vec<String> = serde_json::from_value(found)?;
            links.extend(
                found
                    .into_iter()
                    .filter(|link| link.starts_with(&ui.address("/"))),
            );
        }
    }
    let own = ui.address("");
    for link in links {
        let path = link.strip_prefix(&own).context("a foreign link")?;
        let answer = ui.answer(path).await?;
        ensure!(answer.status() == StatusCode::OK, "{path}: {}", answer.status());
    }
    searches(&browser, &ui).await?;
    asks_what_if(&browser, &ui).await?;
    zooms(&browser, &ui).await?;
    renews_itself(world, &browser, &ui).await?;
    browser.end().await
}

async fn searches(browser: &Chromium, ui: &Ui) -> Result<()> {
    let client = &browser.client;
    client.goto(&ui.address("/index.html")).await?;
    let field = client.find(Locator::Id("q")).await?;
    field.send_keys("KITE").await?;
    browser.follow(Locator::Css("form button")).await?;
    let found = client.find(Locator::Css(".packages a")).await?;
    ensure!(found.text().await? == "kite", "{}", client.source().await?);
    browser.picture("search").await?;
    browser.assert_quiet("search").await
}

async fn asks_what_if(browser: &Chromium, ui: &Ui) -> Result<()> {
    let client = &browser.client;
    client.goto(&ui.address("/extensions/kite.html")).await?;
    browser.follow(Locator::LinkText("What if?")).await?;
    let range = client.find(Locator::Id("range")).await?;
    range.clear().await?;
    range.send_keys(">=1.0.0").await?;
    browser.follow(Locator::Css("form button")).await?;
    client.find(Locator::Id("answer")).await?;
    let text = client.find(Locator::Id("main")).await?.text().await?;
    ensure!(text.contains("kite.v1.1.0") && text.contains("chosen"), "{text}");
    browser.assert_accessible("what if").await?;
    browser.picture("what-if").await?;
    browser.assert_quiet("what if").await
}

/// Checks that the graph is a picture with a size, and grows.
async fn zooms(browser: &Chromium, ui: &Ui) -> Result<()> {
    let client = &browser.client;
    client.goto(&ui.address("/packages/kites/kite.html")).await?;
    // The picture is loaded when it is seen.
    browser
        .value("document.querySelector('.paper img').scrollIntoView({block: 'center'})")
        .await?;
    let width = "(document.querySelector('.paper img').complete && document.querySelector('.paper img').naturalWidth > 0 \
                 ? document.querySelector('.paper img').width : 0)";
    eventually(PATIENCE, "the graph is shown", async || {
        ensure!(browser.value(width).await?.as_u64() > Some(50));
        Ok(())
    })
    .await?;
    browser
        .value("document.querySelector('figure').scrollIntoView({block: 'center'})")
        .await?;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await?;
        browser.picture(&format!("graph-{scheme}")).await?;
    }
    let before = browser.value(width).await?.as_u64();
    let button = client.find(Locator::XPath("//button[text()='Zoom in']")).await?;
    button.click().await?;
    ensure!(
        browser.value(width).await?.as_u64() > before,
        "the graph does not grow"
    );
    browser.assert_quiet("graph").await
}

/// Checks that the page of an extension follows its upgrade, without being loaded again.
async fn renews_itself(world: &World, browser: &Chromium, ui: &Ui) -> Result<()> {
    browser.client.goto(&ui.address("/extensions/kite.html")).await?;
    browser.value("window.loaded = 'once'").await?;
    world.apply("1.1.0").await?;
    eventually(PATIENCE, "the page shows 1.1.0", async || {
        let text = browser.client.find(Locator::Css(".terms")).await?.text().await?;
        ensure!(text.contains("1.1.0") && text.contains("kite.v1.1.0"), "{text}");
        let state = browser
            .client
            .find(Locator::Css(".head strong"))
            .await?
            .text()
            .await?;
        ensure!(state == "Ready", "{state}");
        Ok(())
    })
    .await?;
    ensure!(
        browser.value("window.loaded").await? == json!("once"),
        "the page was loaded again"
    );
    browser.picture("upgraded").await?;
    browser.assert_quiet("upgrade").await
}
