//! Validation of objects by the real API server with this project's CRDs, compared with the validation by upstream's CRDs.
//!
//! Every case is one request with `dryRun=All` and strict field validation. A case of an update first creates the old object, and
//! deletes it afterwards. Therefore, the cases run one after the other.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{Method, Request};
use kube::Client;
use kube::core::Status;
use olm_api::schema::VERSION_RANGE_LENGTH;
use olm_harness::ControlPlane;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::vectors::Report;

/// Name of this kind of vectors, and of its folder.
pub const KIND: &str = "api-validation";
const CHANNEL: &str = "experimental";
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Expected response of the API server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expected {
    /// True if the object is admitted.
    pub accepted: bool,
    /// HTTP status of the answer.
    pub http_status: Option<u16>,
    /// Reason of the refusal.
    pub reason: Option<String>,
    /// Message of the refusal.
    pub error: Option<String>,
    /// Causes of the refusal, as `{reason, message, field}`.
    pub causes: Option<Vec<Value>>,
    /// Parts of the admitted object after defaulting.
    pub object: Option<Value>,
}

impl Expected {
    /// Returns the response that this project expects where upstream has this one. In this project, `spec.namespace` is optional;
    /// see docs/deviations.md.
    fn here(&self) -> Self {
        let field = |cause: &Value| cause.get("field").and_then(Value::as_str).map(str::to_owned);
        let fields: Option<Vec<String>> = self.causes.iter().flatten().map(field).collect();
        // The second cause says that the API server skipped other checks.
        let only_the_namespace = fields.is_some_and(|fields| fields == ["spec.namespace", "<nil>"])
            && self
                .error
                .as_ref()
                .is_some_and(|error| error.contains("spec.namespace: Required value"));
        if !only_the_namespace {
            return self.clone();
        }
        Self {
            accepted: true,
            http_status: Some(201),
            ..Self::default()
        }
    }
}

/// A case: the validation of one object.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Name of the case in reports.
    pub name: String,
    /// The previous object of an update; `None` for a creation.
    pub old: Option<Value>,
    /// The object to validate.
    pub given: Value,
    /// Expected response.
    #[serde(flatten)]
    pub expected: Expected,
}

/// A recorded answer of upstream to a manifest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    file: String,
    old_file: Option<String>,
    channel: String,
    #[serde(flatten)]
    expected: Expected,
}

/// A recorded answer of upstream to a version range in `spec.source.catalog.version`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RangeRow {
    range: String,
    accepted: bool,
    /// True if the library of upstream's controller can parse the range.
    masterminds_parses: bool,
    error: Option<String>,
}

impl RangeRow {
    /// Returns true if an API server with this project's CRDs admits the range: it matches upstream's pattern, or the controller
    /// can parse it. See docs/deviations.md.
    fn is_admitted(&self) -> bool {
        self.accepted || self.masterminds_parses && self.range.len() <= VERSION_RANGE_LENGTH
    }
}

/// Starts a control plane with this project's CRDs and runs every case of the vectors in `dir`: recorded manifests and version
/// fields. A failure of the setup counts as one wrong case.
pub fn run(dir: &Path) -> Report {
    let all = || -> Result<Report> {
        let runtime = tokio::runtime::Runtime::new().context("cannot start a runtime")?;
        runtime.block_on(async {
            let control_plane = ControlPlane::start().await?;
            olm_harness::install_crds(&control_plane.client()).await?;
            run_at(&control_plane.client(), dir).await
        })
    };
    all().unwrap_or_else(|error| {
        let mut report = Report::new(KIND);
        report.count(Some(format!("cannot run: {error:#}")));
        report
    })
}

/// Runs every case of the vectors in `dir` on an API server with this project's CRDs.
///
/// # Errors
/// A file is unreadable or the API server is unreachable. Wrong answers are no errors but part of the report.
pub async fn run_at(client: &Client, dir: &Path) -> Result<Report> {
    let mut report = Report::new(KIND);
    let dir = dir.join(KIND);
    let (cases, of_other_channels) = recorded(&dir)?;
    for case in cases {
        report.count(
            run_case(client, &case)
                .await?
                .map(|difference| format!("{}: {difference}", case.name)),
        );
    }
    if of_other_channels > 0 {
        eprintln!("{KIND}: {of_other_channels} rows left out: their channel lacks fields that ours has");
    }
    for case in version_fields(&dir)? {
        report.count(
            run_case(client, &case)
                .await?
                .map(|difference| format!("{}: {difference}", case.name)),
        );
    }
    Ok(report)
}

/// Returns the recorded manifests as cases, and the number of skipped rows whose answer belongs to a channel of upstream with
/// fewer fields.
fn recorded(dir: &Path) -> Result<(Vec<Case>, usize)> {
    let rows: Vec<Row> = lines(&dir.join("results.jsonl"))?;
    let answered = |row: &Row| {
        rows.iter()
            .any(|r| r.channel == CHANNEL && r.file == row.file && r.expected == row.expected)
    };
    let mut cases = Vec::new();
    let mut of_other_channels = 0;
    let mut absent = 0;
    for row in &rows {
        let answer_known = rows.iter().any(|r| r.channel == CHANNEL && r.file == row.file);
        if answer_known && !answered(row) {
            of_other_channels += 1;
            continue;
        }
        // The folder may have only a part of the recording.
        let files = std::iter::once(&row.file).chain(&row.old_file);
        if files.into_iter().any(|file| !dir.join(file).exists()) {
            absent += 1;
            continue;
        }
        if !answer_known && has_newer_fields(&yaml(&dir.join(&row.file))?) {
            of_other_channels += 1;
            continue;
        }
        cases.push(Case {
            name: format!("{} ({})", row.file, row.channel),
            old: row
                .old_file
                .as_ref()
                .map(|file| yaml(&dir.join(file)))
                .transpose()?,
            given: yaml(&dir.join(&row.file))?,
            expected: row.expected.here(),
        });
    }
    if absent > 0 {
        eprintln!("{KIND}: {absent} rows skipped: their manifests are missing");
    }
    Ok((cases, of_other_channels))
}

/// Returns true if the object has a field that only this project's channel has.
fn has_newer_fields(object: &Value) -> bool {
    ["/spec/config", "/spec/progressDeadlineMinutes"]
        .iter()
        .any(|field| object.pointer(field).is_some())
}

/// Returns cases of ClusterExtensions with the recorded version ranges.
fn version_fields(dir: &Path) -> Result<Vec<Case>> {
    let rows: Vec<RangeRow> = lines(&dir.join("version-field.jsonl"))?;
    let case = |row: RangeRow| Case {
        name: format!("version {:?}", row.range),
        expected: Expected {
            accepted: row.is_admitted(),
            error: row.error,
            ..Expected::default()
        },
        old: None,
        given: json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "test"},
            "spec": {
                "namespace": "ns",
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "pkg", "version": row.range}},
            },
        }),
    };
    Ok(rows.into_iter().map(case).collect())
}

/// Reads this project's cases from a YAML file: a list of [`Case`].
pub fn own_cases(path: &Path) -> Result<Vec<Case>> {
    serde_json::from_value(yaml(path)?).with_context(|| format!("{} is no list of cases", path.display()))
}

/// Runs a case. Returns the difference from the expected response, if any.
pub async fn run_case(client: &Client, case: &Case) -> Result<Option<String>> {
    let collection = path(&case.given)?;
    let Some(old) = &case.old else {
        let answer = send(
            client,
            Method::POST,
            &format!("{collection}?{STRICT}"),
            &case.given,
        )
        .await?;
        return Ok(compare(&case.expected, 201, &answer));
    };
    let name = old
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .context("the old object has no name")?;
    let created = match send(client, Method::POST, &collection, old).await? {
        Answer::Accepted(created) => created,
        Answer::Refused(status) => bail!("{}: the old object is refused: {}", case.name, status.message),
    };
    let mut object = case.given.clone();
    if let Some(version) = created.pointer("/metadata/resourceVersion") {
        object["metadata"]["resourceVersion"] = version.clone();
    }
    let answer = send(
        client,
        Method::PUT,
        &format!("{collection}/{name}?{STRICT}"),
        &object,
    )
    .await?;
    send(
        client,
        Method::DELETE,
        &format!("{collection}/{name}"),
        &json!({}),
    )
    .await?;
    Ok(compare(&case.expected, 200, &answer))
}

const STRICT: &str = "dryRun=All&fieldValidation=Strict";

enum Answer {
    Accepted(Value),
    Refused(Box<Status>),
}

async fn send(client: &Client, method: Method, uri: &str, body: &Value) -> Result<Answer> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(body)?)?;
    let answer = tokio::time::timeout(REQUEST_LIMIT, client.request::<Value>(request))
        .await
        .with_context(|| format!("no answer to {uri} in time"))?;
    match answer {
        Ok(value) => Ok(Answer::Accepted(value)),
        Err(kube::Error::Api(status)) => Ok(Answer::Refused(status)),
        Err(error) => Err(error).with_context(|| format!("cannot ask {uri}")),
    }
}

/// Returns the path of the collection of `object`. All kinds are cluster-scoped.
fn path(object: &Value) -> Result<String> {
    let text = |key: &str| {
        object
            .get(key)
            .and_then(Value::as_str)
            .with_context(|| format!("no {key}"))
    };
    let plural = format!("{}s", text("kind")?.to_lowercase());
    Ok(format!("/apis/{}/{plural}", text("apiVersion")?))
}

fn compare(expected: &Expected, accepted_status: u16, answer: &Answer) -> Option<String> {
    match answer {
        Answer::Accepted(object) => {
            if !expected.accepted {
                return Some(format!(
                    "accepted, expected: {}",
                    expected.error.as_deref().unwrap_or("refused")
                ));
            }
            if expected
                .http_status
                .is_some_and(|status| status != accepted_status)
            {
                return Some(format!(
                    "HTTP {accepted_status}, expected {:?}",
                    expected.http_status
                ));
            }
            let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
            let want = spec(expected.object.as_ref()?);
            let got = spec(object);
            (got != want).then(|| format!("spec is {got}, expected {want}"))
        }
        Answer::Refused(status) => {
            let differs = refusal(status, expected);
            differs.map(|(what, want)| format!("{what}; got {:?}, expected {want}", status.message))
        }
    }
}

/// Returns the first difference between a refusal and the expected one.
fn refusal(status: &Status, expected: &Expected) -> Option<(&'static str, String)> {
    if expected.accepted {
        return Some(("refused", "accepted".to_owned()));
    }
    if let Some(want) = expected.http_status
        && want != status.code
    {
        return Some(("other HTTP status", want.to_string()));
    }
    // The API server answers an unknown route in plain text, which clients show in different ways.
    if status.code == 404 {
        return None;
    }
    if let Some(want) = &expected.error
        && sorted_parts(want) != sorted_parts(&status.message)
    {
        return Some(("other text", want.clone()));
    }
    if let Some(want) = &expected.reason
        && *want != status.reason
    {
        return Some(("other reason", want.clone()));
    }
    if let Some(want) = &expected.causes {
        let causes = status
            .details
            .as_ref()
            .map(|details| details.causes.as_slice())
            .unwrap_or_default();
        let mut got: Vec<String> = causes
            .iter()
            .map(|cause| {
                json!({"reason": cause.reason, "message": cause.message, "field": cause.field}).to_string()
            })
            .collect();
        let mut want: Vec<String> = want.iter().map(Value::to_string).collect();
        got.sort_unstable();
        want.sort_unstable();
        if got != want {
            return Some(("other causes", want.join(", ")));
        }
    }
    None
}

/// Splits the message of a refusal with several causes into sorted parts, because the API server visits the fields in random
/// order.
fn sorted_parts(text: &str) -> Vec<&str> {
    let faults = |text| Some(str::strip_suffix(text, "]")?.split_once(" is invalid: ["));
    let Some(Some((head, faults))) = faults(text) else {
        return vec![text];
    };
    let mut parts: Vec<&str> = faults.split(", ").chain([head]).collect();
    parts.sort_unstable();
    parts
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let parse =
        |line| serde_json::from_str(line).with_context(|| format!("{}: bad line {line}", path.display()));
    text.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

fn yaml(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options)
        .with_context(|| format!("{} is no YAML", path.display()))
}
