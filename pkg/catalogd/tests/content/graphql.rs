//! GraphQL queries.

use axum::{Router, body::Body};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::served;

async fn send(router: &Router, catalog: &str, body: String) -> (StatusCode, String) {
    let request = Request::post(format!("/catalogs/{catalog}/api/v1/graphql"))
        .body(Body::from(body))
        .unwrap();
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, String::from_utf8(bytes.to_vec()).unwrap())
}

async fn query(router: &Router, catalog: &str, query: &str) -> Value {
    let (status, text) = send(router, catalog, json!({"query": query}).to_string()).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_field_has_its_value() {
    let (router, _folder) = served::api();
    let answer = query(
        &router,
        "example",
        "{ olmchannels { name entries { name replaces skips } } \
           examplecomnumberss { __typename name counts big } \
           first: olmpackages(limit: 1) { name icon defaultChannel } \
           second: olmpackages(offset: 1) { name icon } \
           olmbundles(limit: 1) { properties { type value } relatedImages { image } } }",
    )
    .await;
    assert_eq!(
        answer,
        json!({"data": {
            "olmchannels": [{"name": "stable", "entries": [
                {"name": "lamp.v1.0.0", "replaces": null, "skips": null},
                {"name": "lamp.v1.1.0", "replaces": "lamp.v1.0.0", "skips": ["lamp.v1.0.1", "lamp.v1.0.2"]},
            ]}],
            "examplecomnumberss": [{
                "__typename": "ExampleComNumbers", "name": "some", "counts": [1, 2, 3], "big": 12_345_678_901_234_567_890_u64,
            }],
            "first": [{"name": "lamp", "defaultChannel": "stable", "icon":
                "{\"base64data\":\"PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=\",\"mediatype\":\"image/svg+xml\"}"}],
            "second": [{"name": "switch", "icon": null}],
            "olmbundles": [{
                "properties": [{"type": "olm.package", "value": "{\"packageName\":\"lamp\",\"version\":\"1.0.0\"}"}],
                "relatedImages": [{"image": "registry.example/lamp:1.0.0"}],
            }],
        }})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fragments_variables_and_operations() {
    let (router, _folder) = served::api();
    let page = query(
        &router,
        "large",
        "{ olmbundles(limit: 2, offset: 2999) { ...N } } fragment N on OlmBundle { name }",
    )
    .await;
    assert_eq!(page, json!({"data": {"olmbundles": [{"name": "b2999"}]}}));
    let many = query(
        &router,
        "large",
        "{ olmbundles(limit: 1000, offset: -1) { package } }",
    )
    .await;
    assert_eq!(many["data"]["olmbundles"].as_array().unwrap().len(), 100);
    let beyond = query(&router, "large", "{ olmbundles(offset: 2000000000) { name } }").await;
    assert_eq!(beyond, json!({"data": {"olmbundles": []}}));

    let body = json!({
        "query": "query A { summary { totalSchemas } } query B($n: Int) { olmbundles(limit: $n) { name } }",
        "variables": {"n": 1},
        "operationName": "B",
    });
    let (_, text) = send(&router, "large", body.to_string()).await;
    assert_eq!(text, "{\"data\":{\"olmbundles\":[{\"name\":\"b0\"}]}}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_costs_too_much_is_refused() {
    let (router, _folder) = served::api();
    let deep = format!("{}{}", "{a".repeat(50_000 / 2), "}");
    let bomb = "{...A} fragment A on Query {...B ...B ...B ...B ...B ...B ...B ...B} \
                fragment B on Query {...C ...C ...C ...C ...C ...C ...C ...C} \
                fragment C on Query {a:summary{totalSchemas} b:summary{totalSchemas}}";
    let aliases: String = (0..51)
        .map(|n| format!("a{n}:summary{{totalSchemas}} "))
        .collect();
    for (text, message) in [
        (deep.as_str(), "query exceeds maximum depth of 10"),
        (bomb, "query exceeds maximum alias count of 50"),
        (
            &format!("{{{aliases}}}"),
            "query exceeds maximum alias count of 50",
        ),
        (
            &format!("{{summary{{{}}}}}", "totalSchemas ".repeat(501)),
            "query exceeds maximum field count of 500",
        ),
        (
            &format!("{{__schema{{types{{fields{{{}}}}}}}}}", "name ".repeat(490)),
            "query reads more than 32 MiB",
        ),
        ("{", "query parse error: "),
    ] {
        let answer = query(&router, "example", text).await;
        let told = answer["errors"][0]["message"].as_str().unwrap();
        assert!(told.starts_with(message), "{told}");
        assert_eq!(answer["data"], Value::Null);
    }
    let maps = "{\"\":0},".repeat(100_000);
    let variables =
        format!("{{\"query\":\"{{summary{{totalSchemas}}}}\",\"variables\":{{\"a\":[{maps}0]}}}}");
    for body in ["x".repeat(1024 * 1024 + 1), variables] {
        let (status, _) = send(&router, "example", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}

/// The bytes of these values are few; what the library makes of them is a thousand times as much.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_values_are_refused() {
    let content = format!(
        "{{\"schema\":\"s\",\"name\":\"a\",\"numbers\":[{}0],\"maps\":[{}{{\"k\":0}}],\"few\":[1,2]}}",
        "0,".repeat(500_000),
        "{},".repeat(500_000),
    );
    let (router, _folder) = served::api_of(&[("hostile", "catalog.json", &content)]);
    for text in ["{ ss { numbers } }", "{ ss { maps { k } } }"] {
        let answer = query(&router, "hostile", text).await;
        let told = answer["errors"][0]["message"].as_str().unwrap();
        assert!(told.starts_with("query reads more than 32 MiB"), "{told}");
    }
    let answer = query(&router, "hostile", "{ ss { few } }").await;
    assert_eq!(answer, json!({"data": {"ss": [{"few": [1, 2]}]}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn introspection_of_usual_catalogs_is_answered() {
    let (router, _folder) = served::api();
    let text = "{ __schema { types { name kind fields { name args { name type { name } } \
                type { name kind ofType { name kind ofType { name } } } } } } }";
    let answer = query(&router, "example", text).await;
    let types = answer["data"]["__schema"]["types"].as_array().unwrap();
    assert!(types.iter().any(|found| found["name"] == "OlmBundle"), "{answer}");
}
