//! Sessions of the sign-in form.

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DeleteParams};
use olm_harness::eventually;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use tokio::time::timeout;

use super::PATIENCE;
use super::cluster::World;
use super::readers::ALL;

const FORM: &str = "application/x-www-form-urlencoded";

/// A form as a browser has it: its cookie and its hidden field.
struct Form {
    cookie: String,
    value: String,
}

impl Form {
    async fn open(world: &World) -> Result<Self> {
        let answer = world.ask("/sign-in").send().await?;
        ensure!(answer.status() == 200, "{answer:?}");
        let cookie = answer.headers()[SET_COOKIE].to_str()?.to_owned();
        let page = answer.text().await?;
        ensure!(
            cookie.starts_with("__Host-olm-ui-form=")
                && cookie.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict"),
            "{cookie}"
        );
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let (_, value) = cookie.split_once('=').context("no value")?;
        ensure!(
            page.contains(&format!("name=\"form\" value=\"{value}\"")),
            "{page}"
        );
        Ok(Self {
            value: value.to_owned(),
            cookie,
        })
    }

    async fn send(&self, world: &World, body: String, headers: &[(&str, &str)]) -> Result<Response> {
        let mut request = world
            .http
            .post(world.address("/sign-in"))
            .header(CONTENT_TYPE, FORM)
            .header(COOKIE, &self.cookie)
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.send().await?)
    }

    fn body(&self, token: &str) -> String {
        format!("form={}&token={token}", self.value)
    }
}

/// Signs in and returns the cookie of the session.
pub(crate) async fn sign_in(world: &World, token: &str) -> Result<String> {
    let form = Form::open(world).await?;
    let answer = form
        .send(world, form.body(token), &[("sec-fetch-site", "same-origin")])
        .await?;
    ensure!(answer.status() == 303, "{answer:?}");
    ensure!(answer.headers()[LOCATION] == "/extensions.html", "{answer:?}");
    let cookie = answer.headers()[SET_COOKIE].to_str()?.to_owned();
    ensure!(
        cookie.starts_with("__Host-olm-ui=")
            && cookie.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    ensure!(!cookie.contains(token));
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

pub(crate) async fn begin_with_the_form_of_these_pages(world: &World) -> Result<()> {
    let token = world.token("reader", &[]).await?;
    let form = Form::open(world).await?;
    let status = async |body: String, headers: &[(&str, &str)]| -> Result<u16> {
        let answer = form.send(world, body, headers).await?;
        let status = answer.status().as_u16();
        let cookies: Vec<_> = answer.headers().get_all(SET_COOKIE).iter().cloned().collect();
        ensure!(
            !cookies
                .iter()
                .any(|cookie| cookie.to_str().unwrap_or_default().starts_with("__Host-olm-ui="))
        );
        ensure!(!answer.text().await?.contains(&token), "the token is shown");
        Ok(status)
    };
    ensure!(status(format!("token={token}"), &[]).await? == 403, "no value");
    let other = Form::open(world).await?;
    ensure!(
        status(other.body(&token), &[]).await? == 403,
        "the value of another browser"
    );
    ensure!(status(form.body(&token), &[("sec-fetch-site", "cross-site")]).await? == 403);
    ensure!(status(form.body(&token), &[("sec-fetch-site", "same-site")]).await? == 403);
    ensure!(status(form.body(""), &[]).await? == 400);
    ensure!(status(form.body("two%20words"), &[]).await? == 400);
    ensure!(status(form.body("a%0d%0ab"), &[]).await? == 400);
    ensure!(status(form.body("nonsense"), &[]).await? == 401);
    ensure!(status(form.body(&"a".repeat(17 << 10)), &[]).await? == 400);
    ensure!(status(form.body(&"a".repeat(100 << 10)), &[]).await? == 413);
    let plain = world
        .http
        .post(world.address("/sign-in"))
        .header(CONTENT_TYPE, "text/plain");
    let plain = plain
        .header(COOKIE, &form.cookie)
        .body(form.body(&token))
        .send()
        .await?;
    ensure!(plain.status() == 403, "{plain:?}");
    // A token in an address is no token.
    let asked = world.ask(&format!("/sign-in?form={}&token={token}", form.value));
    let asked = asked.header(COOKIE, &form.cookie).send().await?;
    ensure!(asked.status() == 200 && !asked.text().await?.contains(&token));
    Ok(())
}

pub(crate) async fn are_apart(world: &World) -> Result<()> {
    let (reader, stranger) = (
        world.token("reader", &[]).await?,
        world.token("stranger", &[]).await?,
    );
    let (first, second) = (sign_in(world, &reader).await?, sign_in(world, &stranger).await?);
    ensure!(first != second);
    for _ in 0..2 {
        let (status, page) = world.page_of_session(&first, "/extensions.html").await?;
        ensure!(status == 200 && page.contains("lamp"), "{status}: {page}");
        let (status, page) = world.page_of_session(&second, "/extensions.html").await?;
        ensure!(status == 403 && !page.contains("lamp"), "{status}: {page}");
        let (_, page) = world.page_of_session(&first, "/account.html").await?;
        ensure!(
            page.contains("default:reader") && page.contains("Sign out") && !page.contains("stranger"),
            "{page}"
        );
        let (_, page) = world.page_of_session(&second, "/account.html").await?;
        ensure!(
            page.contains("default:stranger") && !page.contains("default:reader"),
            "{page}"
        );
    }
    let guessed = format!("__Host-olm-ui={}", "0".repeat(32));
    ensure!(world.page_of_session(&guessed, "/extensions.html").await?.0 == 401);
    // The session's page that follows the cluster ends with the session.
    let mut events = world
        .ask("/events")
        .header(COOKIE, &first)
        .send()
        .await?
        .bytes_stream();
    timeout(PATIENCE, events.next()).await?.context("no event")??;
    let out = |site| {
        let request = world.http.post(world.address("/sign-out")).header(COOKIE, &first);
        request.header("sec-fetch-site", site).send()
    };
    ensure!(out("cross-site").await?.status() == 403);
    ensure!(world.page_of_session(&first, "/extensions.html").await?.0 == 200);
    let answer = out("same-origin").await?;
    ensure!(
        answer.status() == 303 && answer.headers()["clear-site-data"] == "\"cache\"",
        "{answer:?}"
    );
    ensure!(world.page_of_session(&first, "/extensions.html").await?.0 == 401);
    let ended = async { while let Some(Ok(_)) = events.next().await {} };
    timeout(PATIENCE, ended)
        .await
        .context("the stream goes on after the session")?;
    ensure!(
        world.page_of_session(&second, "/account.html").await?.0 == 200,
        "the other session goes on"
    );
    Ok(())
}

/// The token of a deleted account is refused by the API server.
pub(crate) async fn end_with_their_token(world: &World) -> Result<()> {
    let token = world.reader("leaver", &ALL).await?;
    let cookie = sign_in(world, &token).await?;
    ensure!(world.page_of_session(&cookie, "/extensions.html").await?.0 == 200);
    let mut events = world
        .ask("/events")
        .header(COOKIE, &cookie)
        .send()
        .await?
        .bytes_stream();
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), "default");
    accounts.delete("leaver", &DeleteParams::default()).await?;
    eventually(PATIENCE, "the session has ended", async || {
        let (status, page) = world.page_of_session(&cookie, "/extensions.html").await?;
        ensure!(
            status == 401 && page.contains("Sign in") && !page.contains("lamp"),
            "{status}: {page}"
        );
        Ok(())
    })
    .await?;
    let (status, _) = world.page(&token, "/extensions.html").await?;
    ensure!(status == 401, "{status}");
    let ended = async { while let Some(Ok(_)) = events.next().await {} };
    timeout(PATIENCE, ended)
        .await
        .context("the stream goes on without a token")?;
    Ok(())
}

pub(crate) async fn failed_attempts_are_limited(world: &World) -> Result<()> {
    let token = world.token("reader", &[]).await?;
    let session = sign_in(world, &token).await?;
    let form = Form::open(world).await?;
    let mut limited = false;
    for number in 0..60 {
        let answer = form
            .send(world, form.body(&format!("nonsense-{number}")), &[])
            .await?;
        limited = answer.status() == 429;
        if limited {
            break;
        }
        ensure!(answer.status() == 401, "{answer:?}");
    }
    ensure!(limited, "sixty failures were answered");
    ensure!(form.send(world, form.body(&token), &[]).await?.status() == 429);
    // Who is in stays in.
    ensure!(world.page_of_session(&session, "/extensions.html").await?.0 == 200);
    Ok(())
}
