//! Stored content under a signature policy, for tests.

use std::{collections::BTreeMap, fs, sync::Arc};

use olm_image::ImageConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Context, context::testing::context_with_images};
use crate::storage::{Origin, ValidCatalogName};

pub(super) fn name() -> ValidCatalogName {
    ValidCatalogName::new("c").unwrap()
}

/// Stored content of a tag under a signature policy. Its registry is on loopback, which the controllers never ask.
pub(super) struct Judged {
    pub(super) folder: TempDir,
    pub(super) config: ImageConfig,
    pub(super) context: Arc<Context>,
}

pub(super) const REQUESTED: &str = "127.0.0.1:1/c:v1";

pub(super) fn resolved() -> String {
    format!("127.0.0.1:1/c@sha256:{}", "a".repeat(64))
}

impl Judged {
    /// Stores content without a fingerprint, as earlier versions did, under a policy with this requirement.
    pub(super) fn new(requested: &str, requirement: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = ImageConfig::new(folder.path());
        config.policy_file = Some(folder.path().join("policy.json"));
        let context = context_with_images(folder.path(), config.clone());
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
        let origin = Origin {
            requested: requested.to_owned(),
            resolved: resolved(),
            unpacked_at: 1,
            verified: None,
        };
        context
            .store
            .store(&name(), &source, origin, 1, &|| false)
            .unwrap();
        let judged = Self {
            folder,
            config,
            context,
        };
        judged.policy(requirement);
        judged
    }

    pub(super) fn policy(&self, requirement: &Value) {
        let policy = json!({"default": [requirement]}).to_string();
        fs::write(self.folder.path().join("policy.json"), policy).unwrap();
    }

    /// Writes a policy that has these requirements for these scopes and accepts all other images.
    pub(super) fn policy_of(&self, requirements: &[(&str, &Value)]) {
        let scopes: BTreeMap<_, _> = requirements
            .iter()
            .map(|(scope, requirement)| (scope, [requirement]))
            .collect();
        let accept = json!([{"type": "insecureAcceptAnything"}]);
        let policy = json!({"default": accept, "transports": {"docker": scopes}});
        fs::write(self.folder.path().join("policy.json"), policy.to_string()).unwrap();
    }

    pub(super) fn signed(&self) -> Value {
        let key = self.folder.path().join("cosign.pub");
        let der = format!("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE{}==", "A".repeat(86));
        fs::write(
            &key,
            format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n"),
        )
        .unwrap();
        json!({"type": "sigstoreSigned", "keyPath": key})
    }

    pub(super) fn is_served(&self) -> bool {
        // What a restart finds counts, too.
        let reopened = crate::storage::Store::open(self.folder.path().join("catalogs")).unwrap();
        let served = self.context.store.get(&name()).is_some();
        assert_eq!(reopened.get(&name()).is_some(), served);
        served
    }

    pub(super) async fn accepted(&self) -> bool {
        let stored = self.context.store.get(&name()).unwrap();
        matches!(
            self.context.images.accepts(&stored.manifest().origin).await,
            Ok(true)
        )
    }
}
