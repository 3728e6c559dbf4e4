//! A bundle and options → plain manifests.

use serde_json::Value;

use crate::{Bundle, CertificateRequest, RenderError, RenderOptions};

/// Renders every object that an installation of `bundle` consists of, in the order in which they are
/// best applied. The same input gives the same bytes.
pub fn render(bundle: &Bundle, options: &RenderOptions) -> Result<Vec<Value>, RenderError> {
    let _ = (bundle, options);
    Ok(Vec::new())
}

/// The certificates that [`Certificates::Own`](crate::Certificates::Own) must hold for `bundle`: one
/// for every deployment that serves webhooks, in the order of their names.
pub fn webhook_certificates(bundle: &Bundle, install_namespace: &str) -> Vec<CertificateRequest> {
    let _ = (bundle, install_namespace);
    Vec::new()
}
