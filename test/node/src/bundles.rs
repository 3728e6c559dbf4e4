//! Writes bundles of the sample operator, some of which have a defect.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use olm_harness::workspace;

use crate::content::{NAME, REGISTRY, WORDS, WORDS_NAMESPACE};

/// Webhook of the sample operator, as the end of a CSV.
const WEBHOOK: &str = r"  webhookdefinitions:
    - type: ValidatingAdmissionWebhook
      generateName: greetings.sample.olmv1-rs.example
      deploymentName: sample-operator
      admissionReviewVersions: [v1]
      containerPort: 9443
      targetPort: 9443
      failurePolicy: Fail
      sideEffects: None
      webhookPath: /validate
      rules:
        - apiGroups: [sample.olmv1-rs.example]
          apiVersions: [v1]
          operations: [CREATE]
          resources: [greetings]
";

/// API service of the bundle that serves words, as the end of a CSV.
const API_SERVICE: &str = r"  apiservicedefinitions:
    owned:
      - group: words.olmv1-rs.example
        version: v1
        kind: Word
        name: words
        deploymentName: sample-operator
        containerPort: 5443
";

/// Defect of a bundle, whose pods cannot run then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    AbsentImage,
    Crash,
    AbsentNode,
    FailingProbe,
}

impl Change {
    /// Turns the CSV of version 1.0.0 into the CSV of another version with this defect.
    fn apply(self, csv: &str, version: &str, image: &str) -> Result<String> {
        let original = "registry.invalid/sample-operator:1.0.0";
        ensure!(csv.contains(original), "the sample's image has another name");
        let absent = format!("{REGISTRY}/absent:v1");
        let csv = csv
            .replace(original, if self == Self::AbsentImage { &absent } else { image })
            .replace("1.0.0", version);
        let env = "                    env:\n";
        let containers = "                containers:\n";
        ensure!(
            csv.contains(env) && csv.contains(containers),
            "the sample's CSV has another form"
        );
        // Each version has its own pod template. Without the readiness probe, a pod that crashes later would count as available.
        let variable = format!("                      - {{name: VERSION, value: {version}}}\n");
        let path = if self == Self::FailingProbe {
            "/absent"
        } else {
            "/readyz"
        };
        let probe = format!(
            "                    readinessProbe: {{httpGet: {{path: {path}, port: 8081}}, periodSeconds: 1}}\n"
        );
        let csv = csv.replace(env, &format!("{probe}{env}{variable}")) + WEBHOOK;
        let args = "                    args: [-fail]\n";
        let node_selector = "                nodeSelector: {example.com/absent: 'true'}\n";
        Ok(match self {
            Self::None | Self::AbsentImage | Self::FailingProbe => csv,
            Self::Crash => csv.replace(env, &format!("{args}{env}")),
            Self::AbsentNode => csv.replace(containers, &format!("{node_selector}{containers}")),
        })
    }
}

/// Writes the bundle of a version of the sample operator.
pub(crate) fn write_bundle(target: &Path, version: &str, image: &str, change: Change) -> Result<()> {
    let source = workspace::testdata().join(NAME).join("1.0.0");
    for folder in ["manifests", "metadata"] {
        fs::create_dir(target.join(folder))?;
        for entry in fs::read_dir(source.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().context("no file name")?;
            let mut text = fs::read_to_string(&path)?;
            if name.to_string_lossy().contains("clusterserviceversion") {
                text = change.apply(&text, version, image)?;
            }
            fs::write(target.join(folder).join(name), text)?;
        }
    }
    Ok(())
}

/// Writes a bundle that serves an API and suggests the namespace [`WORDS_NAMESPACE`].
pub(crate) fn write_words_bundle(target: &Path, image: &str) -> Result<()> {
    write_small_bundle(target, WORDS, image)?;
    let path = target.join("manifests/operator.clusterserviceversion.yaml");
    let csv = fs::read_to_string(&path)?;
    let (annotations, env) = ("  annotations:\n", "                    env:\n");
    ensure!(
        csv.contains(annotations) && csv.contains(env),
        "the sample's CSV has another form"
    );
    let template = format!(
        "{annotations}    operatorframework.io/suggested-namespace-template: '{{\"metadata\": {{\"name\": \"{WORDS_NAMESPACE}\", \
         \"labels\": {{\"pod-security.kubernetes.io/enforce\": \"restricted\"}}}}}}'\n"
    );
    let csv = csv.replacen(annotations, &template, 1).replacen(
        env,
        &format!("                    args: [-words]\n{env}"),
        1,
    );
    let api_service = API_SERVICE.replace(NAME, WORDS);
    fs::write(&path, format!("{csv}{api_service}"))?;
    Ok(())
}

/// Writes a bundle of the sample operator under another name and without its CRD.
pub(crate) fn write_small_bundle(target: &Path, name: &str, image: &str) -> Result<()> {
    let source = workspace::testdata().join(NAME).join("1.0.0");
    let csv = fs::read_to_string(source.join(format!("manifests/{NAME}.clusterserviceversion.yaml")))?;
    let owned = csv
        .find("  customresourcedefinitions:\n")
        .context("no owned CRD")?;
    let install = csv.find("  install:\n").context("no install strategy")?;
    let csv = format!("{}{}", &csv[..owned], &csv[install..])
        .replace("registry.invalid/sample-operator:1.0.0", "IMAGE")
        .replace(NAME, name)
        .replace("IMAGE", image);
    let annotations = fs::read_to_string(source.join("metadata/annotations.yaml"))?;
    for (folder, file, text) in [
        ("manifests", "operator.clusterserviceversion.yaml", csv),
        ("metadata", "annotations.yaml", annotations.replace(NAME, name)),
    ] {
        fs::create_dir(target.join(folder))?;
        fs::write(target.join(folder).join(file), text)?;
    }
    Ok(())
}
