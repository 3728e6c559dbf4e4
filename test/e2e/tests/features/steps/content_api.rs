//! Steps about the content API: one request and its response, byte for byte.

use std::io::Read as _;

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::{then, when};
use reqwest::{Certificate, Method, header};

use super::cluster_catalog::authority;
use crate::world::{Answer, OlmWorld};

#[when(regex = r"^a client requests: ([A-Z]+) (\S+)$")]
async fn request(world: &mut OlmWorld, step: &Step, method: String, path: String) -> anyhow::Result<()> {
    let mut headers = Vec::new();
    for row in step.table.iter().flat_map(|table| &table.rows) {
        let [name, value] = row.as_slice() else {
            anyhow::bail!("a header has a name and a value: {row:?}");
        };
        headers.push((name.clone(), world.expand(value)));
    }
    let body = step.docstring.as_ref().map(|text| world.expand(text.trim()));
    let answer = send(world, &method, &path, &headers, body).await?;
    world.answer = Some(answer);
    Ok(())
}

#[then(regex = r"^the response status is (\d+)$")]
async fn has_status(world: &mut OlmWorld, expected: u16) -> anyhow::Result<()> {
    let answer = answer(world)?;
    let text = String::from_utf8_lossy(&answer.body);
    anyhow::ensure!(answer.status == expected, "it is {}: {text}", answer.status);
    Ok(())
}

#[then(regex = r#"^the response has header "([^"]+)": (.+)$"#)]
async fn has_header(world: &mut OlmWorld, name: String, expected: String) -> anyhow::Result<()> {
    let expected = world.expand(&expected);
    let headers = &answer(world)?.headers;
    let found = headers.get(&name).and_then(|value| value.to_str().ok());
    anyhow::ensure!(found == Some(expected.as_str()), "it is {found:?}");
    Ok(())
}

#[then(regex = r"^the response has (\d+) lines$")]
async fn lines(world: &mut OlmWorld, expected: usize) -> anyhow::Result<()> {
    let text = text(world)?;
    anyhow::ensure!(text.lines().count() == expected, "it is {text}");
    Ok(())
}

#[then("the response has no body")]
async fn empty(world: &mut OlmWorld) -> anyhow::Result<()> {
    let body = &answer(world)?.body;
    anyhow::ensure!(body.is_empty(), "it has {} bytes", body.len());
    Ok(())
}

#[then("the response body is:")]
async fn is(world: &mut OlmWorld, step: &Step) -> anyhow::Result<()> {
    let expected = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    let text = text(world)?;
    anyhow::ensure!(text.trim_end() == expected, "it is {text}");
    Ok(())
}

#[then("the response body includes:")]
async fn includes(world: &mut OlmWorld, step: &Step) -> anyhow::Result<()> {
    let expected = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    let text = text(world)?;
    for part in expected.lines() {
        anyhow::ensure!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}

/// Compares the decoded content with the plain content.
#[then(regex = r"^the response body, decoded from (gzip|zstd), equals (\S+)$")]
async fn decoded(world: &mut OlmWorld, encoding: String, path: String) -> anyhow::Result<()> {
    let encoded = answer(world)?;
    let content_encoding = encoded.headers.get(header::CONTENT_ENCODING);
    anyhow::ensure!(
        content_encoding.is_some_and(|content_encoding| content_encoding == &encoding),
        "Content-Encoding is {content_encoding:?}"
    );
    let plain = match encoding.as_str() {
        "gzip" => {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(encoded.body.as_slice()).read_to_end(&mut plain)?;
            plain
        }
        _ => zstd::decode_all(encoded.body.as_slice())?,
    };
    let whole = send(world, "GET", &path, &[], None).await?;
    anyhow::ensure!(plain == whole.body, "they differ");
    Ok(())
}

/// Compares the response with a part of the content.
#[then(regex = r"^the response body equals bytes (\d+) to (\d+) of (\S+)$")]
async fn part(world: &mut OlmWorld, from: usize, to: usize, path: String) -> anyhow::Result<()> {
    let whole = send(world, "GET", &path, &[], None).await?;
    let part = whole.body.get(from..=to).context("it is not that long")?;
    anyhow::ensure!(answer(world)?.body == part, "they differ");
    Ok(())
}

fn answer(world: &OlmWorld) -> anyhow::Result<&Answer> {
    world.answer.as_ref().context("nothing was asked")
}

fn text(world: &OlmWorld) -> anyhow::Result<&str> {
    Ok(std::str::from_utf8(&answer(world)?.body)?)
}

async fn send(
    world: &OlmWorld,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: Option<String>,
) -> anyhow::Result<Answer> {
    let authorities = Certificate::from_pem_bundle(authority(world).await?.as_bytes())?;
    let client = reqwest::Client::builder()
        .no_proxy()
        .no_gzip()
        .tls_certs_only(authorities)
        .build()?;
    let url = format!("{}{}", world.environment.catalogd_url, world.expand(path));
    let mut request = client.request(Method::from_bytes(method.as_bytes())?, url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    let answer = request.send().await?;
    Ok(Answer {
        status: answer.status().as_u16(),
        headers: answer.headers().clone(),
        body: answer.bytes().await?.to_vec(),
    })
}
