//! registry+v1 bundles: parse, validate, render to plain manifests; CRD upgrade safety.
//!
//! The crate does no IO: it takes files as bytes and returns manifests as [`serde_json::Value`]s. Broken input never
//! causes a panic; every defect of a bundle is a [`ParseError`] or a [`RenderError`] that names the file or the object.

mod config;
mod crd_roles;
pub mod crd_safety;
pub mod crd_schema;
mod error;
mod install_namespace;
mod json_text;
pub mod kube_version;
mod loss;
mod model;
mod options;
mod parse;
pub mod permissions;
mod quantity;
mod render;
mod shape;
mod validate;
mod yaml;

pub use config::{ConfigSchema, MAX_NAMESPACES, config_schema, config_skeleton, namespace_selector};
pub use crd_roles::{crd_roles, without_crd_roles};
pub use error::{ParseError, RenderError};
pub use install_namespace::{InstallNamespace, install_namespace};
pub use json_text::{canonical_json, escaped_json, list_hash};
pub use loss::{Loss, losses};
pub use model::{Bundle, InstallMode};
pub use options::{CertificateRequest, Certificates, NextCertificate, OwnCertificate, RenderOptions};
pub use parse::{FORMAT_LABEL, Notice, check_format, lint, parse};
pub use render::{mask_issued_certificates, render, serving_certificates};
pub use validate::findings;
