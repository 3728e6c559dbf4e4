//! Vectors of the content API: rows of `metas.jsonl` with the paths `/all` and `/metas`. Answers of catalogd are compared with
//! upstream's recorded answers.

use super::Report;
use super::content::{self, Recorded, RecordedRequest};
use anyhow::Result;
use axum::body::Body;
use data_encoding::HEXLOWER;
use http::{Request, Response, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    recorded: RecordedRequest,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    status: u16,
    #[serde(default)]
    content_type: String,
    #[serde(default)]
    response_headers: BTreeMap<String, String>,
    /// SHA-256 of the body; empty without a body.
    #[serde(default)]
    raw_sha256: String,
}

/// Decoded response.
struct Answer {
    status: u16,
    headers: http::HeaderMap,
    encoded: bool,
    length: usize,
    declared: Option<u64>,
    sha256: String,
}

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    content::run::<Row>(dir, "content-api", |path| !path.contains("/graphql"))
}

impl Recorded for Row {
    type Answer = Answer;

    fn recorded(&self) -> &RecordedRequest {
        &self.recorded
    }

    fn graphql(&self) -> bool {
        false
    }

    fn request(&self) -> http::Result<Request<Body>> {
        let request = self.recorded.request();
        let headers = self.headers.iter();
        headers
            .fold(request, |request, (name, value)| request.header(name, value))
            .body(Body::empty())
    }

    async fn read(answer: Response<Body>) -> Result<Answer> {
        let (parts, body) = answer.into_parts();
        let exact = body.size_hint().exact();
        let declared = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let raw = body.collect().await?.to_bytes();
        let encoding = parts
            .headers
            .get(header::CONTENT_ENCODING)
            .and_then(|value| value.to_str().ok());
        let mut decoded = Vec::new();
        match encoding {
            Some("gzip") => flate2::read::GzDecoder::new(raw.as_ref()).read_to_end(&mut decoded)?,
            Some("zstd") => zstd::Decoder::new(raw.as_ref())?.read_to_end(&mut decoded)?,
            _ => {
                decoded.extend_from_slice(&raw);
                0
            }
        };
        let sha256 = HEXLOWER.encode(&Sha256::digest(&decoded));
        Ok(Answer {
            status: parts.status.as_u16(),
            encoded: encoding.is_some(),
            headers: parts.headers,
            length: decoded.len(),
            declared: declared.or(exact),
            sha256,
        })
    }

    fn difference(&self, answer: &Answer) -> Option<String> {
        let header = |name: &str| {
            answer
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let mut faults = Vec::new();
        let mut check = |part: &str, theirs: &str, ours: &str| {
            if theirs != ours {
                faults.push(format!("{part} {theirs:?}, ours {ours:?}"));
            }
        };
        check("status", &self.status.to_string(), &answer.status.to_string());
        check("content type", &self.content_type, header("content-type"));
        match self.raw_sha256.as_str() {
            "" => check("body", "0 bytes", &format!("{} bytes", answer.length)),
            recorded => check("body", recorded, &answer.sha256),
        }
        for (name, theirs) in &self.response_headers {
            if name.eq_ignore_ascii_case("content-length") {
                // The recorded length is the length of the uncompressed content.
                if !answer.encoded {
                    check(
                        name,
                        theirs,
                        &answer
                            .declared
                            .map(|length| length.to_string())
                            .unwrap_or_default(),
                    );
                }
            } else {
                check(name, theirs, header(name));
            }
        }
        check("Vary", "Accept-Encoding", header("vary"));
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// Returns the status and the length, or the content type of an answer that upstream cannot give.
    fn summary(answer: &Answer) -> String {
        let kind = answer.headers.get(header::CONTENT_TYPE);
        if kind.is_some_and(|kind| kind == "application/json") {
            return format!("{} application/json", answer.status);
        }
        format!("{} {} bytes", answer.status, answer.length)
    }
}
