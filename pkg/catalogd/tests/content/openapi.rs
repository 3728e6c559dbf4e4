//! The `OpenAPI` document and the real responses agree: every response is documented, with its headers and body, and
//! every documented response occurs.

use std::collections::BTreeSet;

use axum::{Router, body::Body};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::served;

/// Responses that need a broken store, token reviews or a busy server; other tests cover them.
const ELSEWHERE: [&str; 5] = ["401", "403", "429", "500", "503"];

struct Document(Value);

impl Document {
    /// Resolves a `$ref`.
    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(reference) => self.0.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
            None => value,
        }
    }

    fn assert_valid(&self, schema: &Value, value: &Value, of: &str) {
        let whole = json!({"allOf": [schema], "components": self.0["components"]});
        let validator = jsonschema::draft202012::options().build(&whole).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(value)
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "{of}: {faults:?} in {value}");
    }

    fn assert_answer(&self, of: &str, response: &Value, headers: &HeaderMap, body: &[u8]) {
        let response = self.resolve(response);
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            let header = self.resolve(header);
            let value = headers
                .get(name.as_str())
                .unwrap_or_else(|| panic!("{of}: no {name}"));
            self.assert_valid(
                &header["schema"],
                &json!(value.to_str().unwrap()),
                &format!("{of}: {name}"),
            );
        }
        let Some(content) = response["content"].as_object() else {
            assert!(body.is_empty(), "{of}: has a body");
            return;
        };
        let kind = headers["content-type"].to_str().unwrap();
        let kind = kind.split(';').next().unwrap();
        let media = content.get(kind).unwrap_or_else(|| panic!("{of}: is {kind}"));
        let text = std::str::from_utf8(body).unwrap();
        if kind == "application/json" {
            self.assert_valid(&media["schema"], &serde_json::from_str(text).unwrap(), of);
            return;
        }
        self.assert_valid(&media["schema"], &json!(text), of);
        if let Some(item) = media.get("x-itemSchema") {
            for line in text.lines() {
                self.assert_valid(item, &serde_json::from_str(line).unwrap(), of);
            }
        }
    }
}

async fn send(router: &Router, request: Request<Body>) -> (u16, HeaderMap, Vec<u8>) {
    let response: Response<Body> = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), parts.headers, bytes.to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_as_documented() {
    let (router, _folder) = served::api();
    let request = |method: &str, path: &str| Request::builder().method(method).uri(path);
    let (status, headers, body) = send(
        &router,
        request("GET", "/openapi.json").body(Body::empty()).unwrap(),
    )
    .await;
    assert_eq!(
        (status, &headers["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    let document = Document(serde_json::from_slice(&body).unwrap());
    assert_eq!(document.0["openapi"], "3.1.0");

    let mut due = BTreeSet::new();
    for (path, item) in document.0["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for status in operation["responses"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(status, _)| status)
            {
                if status != "default" && !ELSEWHERE.contains(&status.as_str()) {
                    due.insert(format!("{method} {path} {status}"));
                }
            }
        }
    }
    let good = "{\"query\":\"{ summary { totalSchemas } olmbundles { name } }\"}";
    for (template, path, post) in [
        ("/openapi.json", "/openapi.json", ""),
        ("/catalogs", "/catalogs", ""),
        ("/catalogs/{catalog}", "/catalogs/example", ""),
        ("/catalogs/{catalog}", "/catalogs/Bad", ""),
        ("/catalogs/{catalog}", "/catalogs/nope", ""),
        (
            "/catalogs/{catalog}/api/v1/all",
            "/catalogs/example/api/v1/all",
            "",
        ),
        ("/catalogs/{catalog}/api/v1/all", "/catalogs/Bad/api/v1/all", ""),
        ("/catalogs/{catalog}/api/v1/all", "/catalogs/nope/api/v1/all", ""),
        (
            "/catalogs/{catalog}/api/v1/metas",
            "/catalogs/example/api/v1/metas?package=lamp",
            "",
        ),
        (
            "/catalogs/{catalog}/api/v1/metas",
            "/catalogs/example/api/v1/metas?fields=name",
            "",
        ),
        (
            "/catalogs/{catalog}/api/v1/metas",
            "/catalogs/example/api/v1/metas?name=nothing",
            "",
        ),
        (
            "/catalogs/{catalog}/api/v1/metas",
            "/catalogs/example/api/v1/metas?x=y",
            "",
        ),
        (
            "/catalogs/{catalog}/api/v1/metas",
            "/catalogs/example/api/v1/metas?fields=a..b",
            "",
        ),
        (
            "/catalogs/{catalog}/api/v1/metas",
            "/catalogs/nope/api/v1/metas",
            "",
        ),
        (
            "/catalogs/{catalog}/api/v1/graphql",
            "/catalogs/example/api/v1/graphql",
            good,
        ),
        (
            "/catalogs/{catalog}/api/v1/graphql",
            "/catalogs/example/api/v1/graphql",
            "{\"query\":\"{ nope }\"}",
        ),
        (
            "/catalogs/{catalog}/api/v1/graphql",
            "/catalogs/example/api/v1/graphql",
            "{}",
        ),
        (
            "/catalogs/{catalog}/api/v1/graphql",
            "/catalogs/nope/api/v1/graphql",
            good,
        ),
    ] {
        let right = if post.is_empty() { "get" } else { "post" };
        let operation = &document.0["paths"][template][right];
        for (method, header) in [
            (right, None),
            (right, Some(("if-none-match", "*"))),
            (right, Some(("if-match", "\"other\""))),
            (right, Some(("range", "bytes=1-5"))),
            (right, Some(("range", "bytes=999999999-"))),
            ("delete", None),
        ] {
            let mut sent = request(&method.to_uppercase(), path);
            if let Some((name, value)) = header {
                sent = sent.header(name, value);
            }
            let (status, headers, body) = send(&router, sent.body(Body::from(post)).unwrap()).await;
            let of = format!("{right} {template} {status}");
            let response = &operation["responses"][status.to_string()];
            assert!(
                response.is_object(),
                "{of} is not documented ({path} with {header:?})"
            );
            document.assert_answer(&of, response, &headers, &body);
            due.remove(&of);
            if method == "get" {
                let mut sent = request("HEAD", path);
                if let Some((name, value)) = header {
                    sent = sent.header(name, value);
                }
                let head = send(&router, sent.body(Body::empty()).unwrap()).await;
                // Only GET has ranges.
                let expected = if matches!(status, 206 | 416) { 200 } else { status };
                assert_eq!(
                    (head.0, head.2.len()),
                    (expected, 0),
                    "HEAD of {path} with {header:?}"
                );
                if status != 416 {
                    assert_eq!(head.1.get("etag"), headers.get("etag"));
                }
            }
        }
    }
    assert!(due.is_empty(), "documented, but never given: {due:?}");
}
