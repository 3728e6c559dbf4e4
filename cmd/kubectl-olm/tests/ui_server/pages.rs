//! The sign-in page and the first page behind it, in a real browser.

use anyhow::{Result, ensure};
use fantoccini::Locator;

use super::cluster::World;
use crate::common::chromium::Chromium;
use crate::common::skipped;

/// Signs in by the form, looks at the account, and signs out.
pub(crate) async fn are_usable_in_a_browser(world: &World) -> Result<()> {
    let Some(browser) = Chromium::start_with(&["--ignore-certificate-errors"]).await? else {
        skipped("this machine has no browser, so nobody signed in with one");
        return Ok(());
    };
    let client = &browser.client;
    let token = world.token("reader", &[]).await?;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await?;
        client.goto(&world.address("/sign-in")).await?;
        browser.assert_accessible("sign in").await?;
        browser.picture(&format!("sign-in-{scheme}")).await?;
        browser.assert_quiet("sign in").await?;
    }
    let field = client.find(Locator::Id("token")).await?;
    field.send_keys(&token).await?;
    browser.follow(Locator::Css("form button")).await?;
    client.find(Locator::LinkText("lamp")).await?;
    let address = client.current_url().await?;
    ensure!(address.path() == "/extensions.html", "{address}");
    let cookie = browser.value("document.cookie").await?;
    ensure!(cookie == "", "scripts read cookies: {cookie}");
    browser.follow(Locator::LinkText("Account")).await?;
    client.find(Locator::Css("form button")).await?;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await?;
        browser.assert_accessible("account").await?;
        browser.picture(&format!("account-{scheme}")).await?;
    }
    browser.assert_quiet("account").await?;
    browser.follow(Locator::Css("form button")).await?;
    client.find(Locator::Id("token")).await?;
    browser.assert_quiet("sign out").await?;
    client.goto(&world.address("/extensions.html")).await?;
    let text = client.find(Locator::Id("main")).await?.text().await?;
    ensure!(text.contains("Sign in") && !text.contains("lamp"), "{text}");
    browser.end().await
}
