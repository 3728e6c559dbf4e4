//! `bundle`: rendered objects, defects and required rights of a bundle, without a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use olm_api::names;
use olm_bundle::permissions::{
    Escalation, PermissionOptions, PolicyRule, RequiredRule, RuleScope, required_rules,
};
use olm_bundle::{
    Bundle, Certificates, OwnCertificate, RenderError, RenderOptions, findings, install_namespace, lint,
    parse, render, serving_certificates,
};
use olm_manifests::is_crd;
use olm_text::counted;
use olm_text::object::{ObjectId, text};
use serde_json::{Value, json};

use crate::cli::bundle::{BundleArgs, BundleCommand, Issuer, PermissionsArgs, RenderArgs};
use crate::failure::Failure;
use crate::manifests::list;
use crate::report::Report;
use crate::source::{SourceError, bundle_files};
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Runs a subcommand; positive unless the bundle would be refused.
pub(crate) async fn run(command: BundleCommand, style: Style) -> Result<Report, Failure> {
    match command {
        BundleCommand::Render(args) => rendered(&args, style).await,
        BundleCommand::Validate(args) => validated(&args, style).await,
        BundleCommand::Permissions(args) => permissions(&args, style).await,
    }
}

/// Configuration of a bundle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configuration {
    /// `spec.config.inline`.
    pub inline: Option<Value>,
    /// Namespaces that its `watchNamespaceSelector` matches, if they are known.
    pub selected: Option<Vec<String>>,
    /// Parts of bundles and configurations that operator-controller installs.
    pub permitted: Permitted,
}

/// Parts of bundles and configurations that operator-controller installs by its feature gates; all of them without a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permitted {
    /// True for bundles without the install mode `AllNamespaces`.
    pub single_own_namespace: bool,
    /// True for configurations with `deploymentConfig`.
    pub deployment_config: bool,
}

impl Default for Permitted {
    fn default() -> Self {
        Self {
            single_own_namespace: true,
            deployment_config: true,
        }
    }
}

impl Configuration {
    /// Reads the configuration from the command line.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub(crate) fn read(text: Option<&str>, selected: &[String]) -> Result<Self, Failure> {
        Ok(Self {
            inline: text.map(config).transpose()?,
            selected: (!selected.is_empty()).then(|| selected.to_vec()),
            permitted: Permitted::default(),
        })
    }
}

/// Returns the bundle and its rendered objects.
async fn load(args: &RenderArgs) -> Result<(Bundle, Vec<Value>), Failure> {
    let files = bundle_files(&args.bundle.bundle, &args.bundle.access).await?;
    let config = Configuration::read(args.config.as_deref(), &args.selected_namespaces)?;
    let place = InstallInto::Existing(&args.namespace);
    let rendered = rendered_files(&files, place, config, args.certificates)?;
    Ok((rendered.bundle, rendered.objects))
}

/// Install namespace of a rendering.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InstallInto<'a> {
    /// A namespace that exists.
    Existing(&'a str),
    /// A namespace that is created with the bundle: the one that was chosen before, else the one that the bundle suggests.
    Created(Option<&'a str>),
}

/// A rendered bundle.
pub(crate) struct RenderedBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// Its install namespace.
    pub namespace: String,
    /// Its objects.
    pub objects: Vec<Value>,
}

/// Returns the rendered objects after a check of their names.
fn checked(bundle: &Bundle, options: &RenderOptions) -> Result<Vec<Value>, Failure> {
    let objects = render(bundle, options).map_err(|error| refused(&error))?;
    names::check_all(objects.iter()).map_err(|error| Failure::NegativeAnswer(error.to_string()))?;
    Ok(objects)
}

fn refused(error: &RenderError) -> Failure {
    Failure::NegativeAnswer(match (error, error.allowed()) {
        (_, Some(allowed)) => format!("{error}. {allowed}"),
        (RenderError::UnknownNamespaces, None) => {
            format!("{error} without a cluster: name them by --selected-namespace")
        }
        (_, None) => error.to_string(),
    })
}

/// Renders a bundle's files in a namespace, with placeholders for the certificates of operator-controller.
///
/// # Errors
/// The bundle would be refused.
pub(crate) fn rendered_files(
    files: &BTreeMap<String, Vec<u8>>,
    place: InstallInto<'_>,
    config: Configuration,
    issuer: Issuer,
) -> Result<RenderedBundle, Failure> {
    rendered_with(files, place, config, |bundle, namespace| {
        certificates(bundle, namespace, issuer)
    })
}

/// Renders a bundle's files in a namespace, with the certificates that `issued` returns.
///
/// # Errors
/// The bundle would be refused.
pub(crate) fn rendered_with(
    files: &BTreeMap<String, Vec<u8>>,
    place: InstallInto<'_>,
    config: Configuration,
    issued: impl FnOnce(&Bundle, &str) -> Certificates,
) -> Result<RenderedBundle, Failure> {
    let bundle = parse(files).map_err(|error| Failure::NegativeAnswer(error.to_string()))?;
    let namespace = match place {
        InstallInto::Existing(namespace) => namespace.to_owned(),
        InstallInto::Created(chosen) => {
            let suggested = install_namespace(&bundle, chosen);
            suggested.map_err(|error| refused(&error))?.name
        }
    };
    let mut options = RenderOptions::new(namespace.clone());
    options.with_namespace = matches!(place, InstallInto::Created(_));
    options.config = config.inline;
    options.selected_namespaces = config.selected;
    options.single_own_namespace = config.permitted.single_own_namespace;
    options.deployment_config = config.permitted.deployment_config;
    options.certificates = issued(&bundle, &namespace);
    let objects = checked(&bundle, &options)?;
    Ok(RenderedBundle {
        bundle,
        namespace,
        objects,
    })
}

/// Returns the certificates of an issuer, with placeholders for those of operator-controller.
pub(crate) fn certificates(bundle: &Bundle, namespace: &str, issuer: Issuer) -> Certificates {
    match issuer {
        Issuer::CertManager => Certificates::CertManager,
        Issuer::ServiceCa => Certificates::ServiceCa,
        Issuer::None => Certificates::None,
        Issuer::Own => own(bundle, namespace),
    }
}

/// Returns placeholders for certificates: only operator-controller issues real keys.
fn own(bundle: &Bundle, namespace: &str) -> Certificates {
    let requests = serving_certificates(bundle, namespace);
    let empty = |request: olm_bundle::CertificateRequest| {
        let certificate = OwnCertificate {
            ca_pem: String::new(),
            cert_pem: String::new(),
            key_pem: String::new(),
            next: None,
        };
        (request.secret_name, certificate)
    };
    Certificates::Own(requests.into_iter().map(empty).collect())
}

/// Parses the value of `--config`; `@FILE` reads a file.
///
/// # Errors
/// The file cannot be read, or the text is neither JSON nor YAML.
fn config(text: &str) -> Result<Value, Failure> {
    let text = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(path) => std::fs::read_to_string(path).map_err(|source| SourceError::Read {
            path: path.into(),
            source,
        })?,
    };
    olm_yaml::document(text.as_bytes(), &olm_yaml::Limits::default())
        .map_err(|error| Failure::Usage(format!("the configuration is neither JSON nor YAML: {error}")))
}

async fn rendered(args: &RenderArgs, style: Style) -> Result<Report, Failure> {
    let (bundle, objects) = load(args).await?;
    let mut table = Table::new(&["KIND", "NAMESPACE", "NAME"]);
    for object in &objects {
        let id = ObjectId::of(object);
        table.row(Paint::Plain, [id.kind, id.namespace, id.name]);
    }
    let mut out = table.text(style, "");
    let _ = writeln!(
        out,
        "{}: {}",
        clean(bundle.csv_name()),
        counted(objects.len(), "object")
    );
    Ok(Report::new(list(&objects), out))
}

async fn validated(args: &BundleArgs, style: Style) -> Result<Report, Failure> {
    let files = bundle_files(&args.bundle, &args.access).await?;
    let parsed = parse(&files);
    let errors: Vec<String> = match &parsed {
        Ok(bundle) => findings(bundle),
        Err(error) => vec![error.to_string()],
    };
    let errors: Vec<&str> = errors.iter().flat_map(|error| error.lines()).collect();
    let notices = lint(&files);
    let mut out = String::new();
    for error in &errors {
        let _ = writeln!(out, "{} {}", style.paint(Paint::Bad, "error:"), clean(error));
    }
    for notice in &notices {
        let head = style.paint(Paint::Warn, "warning:");
        let _ = writeln!(out, "{head} {}: {}", clean(&notice.file), clean(&notice.message));
    }
    let name = parsed.as_ref().map_or("the bundle", Bundle::csv_name);
    let verdict = if errors.is_empty() {
        "can be installed"
    } else {
        "would be refused"
    };
    let _ = writeln!(
        out,
        "{} {verdict}: {}, {}",
        clean(name),
        counted(errors.len(), "error"),
        counted(notices.len(), "warning")
    );
    let value = json!({
        "bundle": parsed.as_ref().ok().map(Bundle::csv_name),
        "package": parsed.as_ref().ok().map(Bundle::package),
        "version": parsed.as_ref().ok().map(Bundle::version),
        "installModes": parsed.as_ref().ok().map(|bundle| {
            bundle.install_modes().iter().map(ToString::to_string).collect::<Vec<_>>()
        }),
        "errors": errors,
        "warnings": notices,
    });
    let positive = errors.is_empty();
    Ok(Report::new(value, out).positive(positive))
}

async fn permissions(args: &PermissionsArgs, style: Style) -> Result<Report, Failure> {
    let (bundle, objects) = load(&args.render).await?;
    let options = PermissionOptions {
        escalation: if args.escalate {
            Escalation::Verbs
        } else {
            Escalation::Rules
        },
        owner: Some(""),
        resources: None,
    };
    let mut rules = required_rules(&objects, &options);
    add_lists(&mut rules, &objects);
    let name = format!("{}-installer", bundle.package());
    let mut table = Table::new(&["WHERE", "VERBS", "GROUP", "RESOURCES", "NAMES"]);
    for required in &rules {
        let place = match &required.scope {
            RuleScope::Cluster => "*",
            RuleScope::Namespace(name) => name,
        };
        let join = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(",");
        let rule = &required.rule;
        let resources = if rule.resources.is_empty() {
            &rule.non_resource_urls
        } else {
            &rule.resources
        };
        table.row(
            Paint::Plain,
            [
                place,
                &join(&rule.verbs),
                &join(&rule.api_groups),
                &join(resources),
                &join(&rule.resource_names),
            ],
        );
    }
    let out = table.text(style, "");
    let value = if args.split {
        split(&name, &rules)
    } else {
        let all: Vec<_> = rules.iter().map(|required| &required.rule).collect();
        role("ClusterRole", &name, None, &all)
    };
    Ok(Report::new(value, out))
}

/// Adds `list` on the custom resources of every CRD. With `--service-account-policy=Require` a removal counts them with the
/// rights of the account, and keeps every CRD that it cannot count. An installation does not need the right.
fn add_lists(rules: &mut Vec<RequiredRule>, objects: &[Value]) {
    for crd in objects.iter().filter(|object| is_crd(object)) {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        let one = |text: &str| BTreeSet::from([text.to_owned()]);
        let rule = PolicyRule {
            api_groups: one(group),
            resources: one(plural),
            verbs: one("list"),
            ..PolicyRule::default()
        };
        let granted =
            |required: &RequiredRule| required.scope == RuleScope::Cluster && required.rule.covers(&rule);
        if !rules.iter().any(granted) {
            let scope = RuleScope::Cluster;
            rules.push(RequiredRule { scope, rule });
        }
    }
    rules.sort();
}

/// Returns a `ClusterRole` for cluster-wide rules and a `Role` for each namespace.
fn split(name: &str, rules: &[RequiredRule]) -> Value {
    let mut by_scope: BTreeMap<&RuleScope, Vec<_>> = BTreeMap::new();
    for required in rules {
        by_scope.entry(&required.scope).or_default().push(&required.rule);
    }
    let documents = by_scope.into_iter().map(|(scope, rules)| match scope {
        RuleScope::Cluster => role("ClusterRole", name, None, &rules),
        RuleScope::Namespace(namespace) => role("Role", name, Some(namespace), &rules),
    });
    list(&documents.collect::<Vec<_>>())
}

fn role(kind: &str, name: &str, namespace: Option<&str>, rules: &[&PolicyRule]) -> Value {
    let mut metadata = json!({"name": name});
    if let (Some(metadata), Some(namespace)) = (metadata.as_object_mut(), namespace) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules})
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn a_bundle_is_rendered_as_the_gates_permit() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/testdata/bundles");
        let nothing = Permitted {
            single_own_namespace: false,
            deployment_config: false,
        };
        for (bundle, inline, permitted, error) in [
            (
                "tides",
                json!({"watchNamespace": "default"}),
                Permitted::default(),
                None,
            ),
            (
                "tides",
                json!({"watchNamespace": "default"}),
                nothing,
                Some("AllNamespaces"),
            ),
            (
                "beacon",
                json!({"deploymentConfig": {}}),
                Permitted::default(),
                None,
            ),
            (
                "beacon",
                json!({"deploymentConfig": {}}),
                nothing,
                Some("deploymentConfig"),
            ),
        ] {
            let files = olm_bundle_files::read(&root.join(bundle)).unwrap();
            let config = Configuration {
                inline: Some(inline),
                permitted,
                ..Configuration::default()
            };
            let place = InstallInto::Existing("default");
            let refused = rendered_files(&files, place, config, Issuer::Own).err();
            let text = refused.map(|error| error.message());
            assert_eq!(text.is_some(), error.is_some(), "{bundle}: {text:?}");
            assert!(
                text.unwrap_or_default().contains(error.unwrap_or_default()),
                "{bundle}"
            );
        }
    }
}
