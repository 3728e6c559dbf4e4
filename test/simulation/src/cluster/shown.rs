//! Requests and answers as the trace shows them.

use olm_world::Request;
use serde_json::Value;

/// Returns the request as the trace shows it.
pub(super) fn shown(request: &Request) -> String {
    let query = if request.query.is_empty() {
        String::new()
    } else {
        format!("?{}", request.query)
    };
    let account = request.impersonate_user.as_deref();
    let account = account.map(|user| format!(" as {user}")).unwrap_or_default();
    let mut body = String::from_utf8_lossy(&request.body).into_owned();
    if body.len() > 300 {
        body.truncate(body.floor_char_boundary(300));
        body.push('…');
    }
    format!("{} {}{query}{account} {body}", request.method, request.path)
}

/// Returns the message of a failed answer for the trace; empty for success.
pub(super) fn told(status: u16, body: &[u8]) -> String {
    if status < 400 {
        return String::new();
    }
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    format!(" {}", status["message"].as_str().unwrap_or_default())
}
