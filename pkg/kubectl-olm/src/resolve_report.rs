//! Report on a resolution, as data and as text.

use std::fmt::Write as _;

use olm_fbc::lifecycle::Date;
use olm_packages::support;
use olm_resolve::{
    CatalogInput, Change, Explanation, Installed, Request, Resolution, ResolveError, SupportAnswer,
    constraint, resolve, suggest,
};
use olm_text::name::PackageName;
use olm_version::RequestedRange;
use serde_json::{Value, json};

use crate::cli::{Policy, RequestArgs, SourceArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::installed::{self, found};
use crate::lifecycle;
use crate::source::{Cluster, needs};
use crate::style::{Paint, Style};
use crate::table::clean;
use crate::unknown_version::UnknownVersion;

/// A fact with its name.
pub(crate) type Fact = (Paint, &'static str, String);

/// A request with the resolver's result.
#[derive(Debug)]
pub(crate) struct ResolveReport {
    /// Request to the resolver.
    pub(crate) request: Request,
    /// Result of the resolution.
    pub(crate) result: Result<Resolution, ResolveError>,
    /// The smallest change that gives the wanted bundle; empty if no change is needed, none if no change suffices.
    pub(crate) suggestion: Option<Vec<Change>>,
    /// Set if no catalog has the wanted version or bundle.
    pub(crate) absent: Option<UnknownVersion>,
    /// Dependencies of the chosen bundle that cannot be read or that the cluster does not meet; none if nothing is required, or if they
    /// can be read and no cluster was asked.
    pub(crate) unmet: Option<Vec<String>>,
    /// Support of the installed version.
    pub(crate) installed_support: SupportAnswer,
    /// Support of the chosen version.
    pub(crate) support: SupportAnswer,
    /// Sentence about feature gates that are assumed and may change the result.
    pub(crate) assumption: Option<String>,
}

/// Returns the request of the flags, by the feature gates that these flags changed already.
///
/// # Errors
/// The installed bundle is unknown or ambiguous.
pub(crate) fn request(
    package: &PackageName,
    request_args: &RequestArgs,
    catalogs: &[CatalogInput],
    gates: &Gates,
) -> Result<Request, Failure> {
    let installed = request_args
        .installed
        .as_deref()
        .map(|text| installed::read(text, catalogs, gates.release_support()));
    Ok(Request {
        package: package.clone(),
        range: request_args.range.as_deref().and_then(RequestedRange::new),
        channels: request_args.channels.clone(),
        self_certified: request_args.policy == Policy::SelfCertified,
        installed: installed.transpose()?,
        release_support: gates.release_support(),
        selection: gates.selection(),
        similar: Vec::new(),
    })
}

impl ResolveReport {
    /// Runs the resolver; `want` is the wanted version or bundle, if any.
    pub(crate) fn new(request: Request, catalogs: &[CatalogInput], want: Option<&str>) -> Self {
        let result = resolve(&request, catalogs);
        let absent = want.and_then(|want| UnknownVersion::new(want, catalogs, request.release_support));
        let suggestion = match (&result, want) {
            (Ok(_), None) => Some(Vec::new()),
            _ => suggest(&request, catalogs, want),
        };
        Self {
            request,
            result,
            suggestion,
            absent,
            unmet: None,
            installed_support: SupportAnswer::NoData,
            support: SupportAnswer::NoData,
            assumption: None,
        }
    }

    /// Adds the support of the installed and of the chosen version on the day `today` of UTC.
    pub(crate) fn add_support(&mut self, catalogs: &[CatalogInput], today: Date) {
        if let Some(installed) = &self.request.installed {
            self.installed_support =
                lifecycle::of_installed(catalogs, installed.catalog.as_ref(), &installed.version, today);
        }
        if let Ok(chosen) = &self.result
            && let Some((_, content)) = found(catalogs).find(|(name, _)| **name == chosen.catalog)
        {
            self.support = support::of_bundle(content, Some(&chosen.version), today);
        }
    }

    /// Checks the dependencies of the chosen bundle on the cluster, unless the bundle is already installed. If the command is offline,
    /// only checks that they can be read. `extension` is the extension to install, if any.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn check_dependencies(
        &mut self,
        source: &SourceArgs,
        extension: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(found) = self.change() else { return Ok(()) };
        if source.is_offline() {
            // Without a cluster, only the text of the dependencies is known.
            self.unmet = needs::unreadable(&found.bundle, &found.properties).map(|sentence| vec![sentence]);
            return Ok(());
        }
        let cluster = Cluster::connect(&source.access).await?;
        self.check_dependencies_on(&cluster, extension).await
    }

    /// Checks the dependencies of the chosen bundle, if any, on a cluster.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn check_dependencies_on(
        &mut self,
        cluster: &Cluster,
        extension: Option<&str>,
    ) -> Result<(), Failure> {
        let Ok(found) = &self.result else { return Ok(()) };
        let unmet = cluster.unmet(&found.bundle, &found.properties, extension, &[]);
        self.unmet = unmet.await?;
        Ok(())
    }

    /// Returns the warning about a dependency of the chosen bundle that cannot be read; none if the bundle is already installed.
    pub(crate) fn unreadable_dependency(&self) -> Option<String> {
        let found = self.change()?;
        let sentence = needs::unreadable(&found.bundle, &found.properties)?;
        Some(format!("{sentence}; operator-controller does not install it"))
    }

    /// Returns the chosen bundle, if another one is installed or none.
    fn change(&self) -> Option<&Resolution> {
        let installed = self.request.installed.as_ref();
        let found = self.result.as_ref().ok()?;
        installed
            .is_none_or(|installed| installed.name != found.bundle)
            .then_some(found)
    }

    /// Returns the reasons of the result.
    pub(crate) fn explanation(&self) -> &Explanation {
        match &self.result {
            Ok(resolution) => &resolution.explanation,
            Err(error) => &error.explanation,
        }
    }

    /// Returns true if the result is a bundle whose dependencies are met.
    pub(crate) fn is_positive(&self) -> bool {
        self.result.is_ok() && self.unmet.as_ref().is_none_or(Vec::is_empty)
    }

    /// Returns the report as data: request, resolution or error, suggestion.
    pub(crate) fn value(&self) -> Value {
        let request = &self.request;
        let mut value = json!({
            "request": {
                "package": request.package,
                "version": request.range.as_ref().map(RequestedRange::as_str),
                "channels": request.channels,
                "upgradeConstraintPolicy": if request.self_certified { "SelfCertified" } else { "CatalogProvided" },
                "installed": request.installed.as_ref().map(installed_value),
            },
            "suggestion": self.suggestion,
        });
        let (key, answer) = match &self.result {
            Ok(found) => ("resolution", resolution_value(found)),
            Err(error) => (
                "error",
                Failure::NegativeAnswer(error.to_string()).value()["error"].take(),
            ),
        };
        if let Some(map) = value.as_object_mut() {
            map.insert(key.to_owned(), answer);
            for (path, support) in [("installed", &self.installed_support), ("chosen", &self.support)] {
                if !support.is_no_data() {
                    let all = map.entry("support").or_insert_with(|| json!({}));
                    all[path] = json!(support);
                }
            }
            if let Some(absent) = &self.absent {
                map.insert(
                    "absent".to_owned(),
                    json!({"want": absent.want, "nearest": absent.nearest}),
                );
            }
            if let Some(assumption) = &self.assumption {
                map.insert("assumption".to_owned(), json!(assumption));
            }
            if let Some(unmet) = &self.unmet {
                map.insert("unmet".to_owned(), json!(unmet));
            }
        }
        value
    }

    /// Returns the report as lines of text.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut text = String::new();
        for (paint, name, value) in self.facts() {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{name:<11}{}", style.paint(paint, &clean(&value)));
        }
        text
    }

    /// Returns the request and its result as facts with names, in the order of the text.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = Vec::new();
        let mut fact = |paint, name, value: &str| facts.push((paint, name, value.to_owned()));
        fact(Paint::Plain, "Package", &self.request.package);
        if let Some(installed) = &self.request.installed {
            fact(Paint::Plain, "Installed", &installed_text(installed));
            if let Some(text) = support::sentences(&self.installed_support) {
                fact(lifecycle::paint(&self.installed_support), "Support", &text);
            }
        }
        if let Some(range) = &self.request.range {
            fact(Paint::Plain, "Range", range.as_str());
        }
        if !self.request.channels.is_empty() {
            fact(Paint::Plain, "Channels", &self.request.channels.join(", "));
        }
        match &self.result {
            Ok(found) => {
                fact(Paint::Good, "Bundle", &found.bundle);
                fact(Paint::Good, "Version", &found.version.to_string());
                fact(Paint::Plain, "Catalog", &found.catalog);
                fact(Paint::Plain, "Image", &found.image);
                for need in requirements(found) {
                    fact(Paint::Warn, "Needs", &need);
                }
                match self.unmet.as_deref() {
                    None => {}
                    Some([]) => fact(Paint::Good, "Met", "all dependencies are met"),
                    Some(unmet) => {
                        for text in unmet {
                            fact(Paint::Bad, "Unmet", text);
                        }
                    }
                }
                for message in deprecations(found) {
                    fact(Paint::Warn, "Deprecated", &message);
                }
                if let Some(text) = support::sentences(&self.support) {
                    fact(lifecycle::paint(&self.support), "Support", &text);
                }
                for (catalog, reason) in &found.left_out {
                    fact(Paint::Warn, "Left out", &format!("catalog {catalog}: {reason}"));
                }
            }
            Err(error) => fact(Paint::Bad, "No bundle", &error.to_string()),
        }
        if let Some(assumption) = &self.assumption {
            fact(Paint::Warn, "Assumed", assumption);
        }
        facts
    }

    /// Returns the suggestion as lines of text; empty if there is none.
    pub(crate) fn suggestion_text(&self, want: Option<&str>, style: Style) -> String {
        let goal = match want {
            Some(want) => format!("To get {}", clean(want)),
            None => "To get a bundle".to_owned(),
        };
        let said = match &self.result {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        match self.suggestion.as_deref() {
            Some([]) => String::new(),
            // The resolver's own message may have it already.
            Some(changes) if changes.iter().all(|change| said.contains(&change.to_string())) => String::new(),
            Some(changes) => {
                let steps: Vec<String> = changes.iter().map(|change| clean(&change.to_string())).collect();
                format!(
                    "{} {}.\n",
                    style.paint(Paint::Bold, &format!("{goal}:")),
                    steps.join("; ")
                )
            }
            None => match &self.absent {
                Some(absent) => format!("{}.\n", clean(&absent.to_string())),
                None => format!("{goal}: no change of the spec suffices.\n"),
            },
        }
    }
}

/// Lists the bundle's dependencies. Only a cluster can tell if they are met.
fn requirements(found: &Resolution) -> Vec<String> {
    match constraint::parse(&found.properties) {
        Ok(needs) => needs.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!(
            "an invalid dependency, which prevents the installation: {error}"
        )],
    }
}

fn deprecations(found: &Resolution) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(
        found
            .deprecation
            .package
            .iter()
            .map(|message| format!("package: {message}")),
    );
    if let Some(message) = found.deprecation.bundles.get(found.bundle.as_str()) {
        lines.push(format!("bundle: {message}"));
    }
    lines
}

/// Returns `NAME (VERSION)`, with the catalog if known.
pub(crate) fn installed_text(installed: &Installed) -> String {
    // With its release, as the chosen version is shown.
    let version = match installed.version.parsed() {
        Ok(parsed) => parsed.to_string(),
        Err(_) => installed.version.to_string(),
    };
    match &installed.catalog {
        Some(catalog) => format!("{} ({version}) from catalog {catalog}", installed.name),
        None => format!("{} ({version})", installed.name),
    }
}

fn installed_value(installed: &Installed) -> Value {
    json!({
        "name": installed.name,
        "version": installed.version.as_str(),
        "release": installed.version.release(),
        "catalog": installed.catalog,
    })
}

fn resolution_value(found: &Resolution) -> Value {
    let left_out: Vec<Value> = found
        .left_out
        .iter()
        .map(|(catalog, reason)| json!({"catalog": catalog, "reason": reason}))
        .collect();
    json!({
        "catalog": found.catalog,
        "bundle": found.bundle,
        "image": found.image,
        "version": found.version.version.to_string(),
        "release": found.version.release.as_ref().map(|release| release.as_str().to_owned()),
        "deprecation": {
            "package": found.deprecation.package,
            "channels": found.deprecation.channels,
            "bundles": found.deprecation.bundles,
        },
        "leftOut": left_out,
        "needs": requirements(found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::stand_in;

    /// Returns the report about a bundle with this dependency, for an extension that has `installed`.
    async fn offline(range: &str, installed: Option<&str>) -> ResolveReport {
        let needed = json!({"packageName": "base", "versionRange": range});
        let needed = json!({"type": "olm.package.required", "value": needed});
        let catalog = stand_in::catalog(&[("1.0.0", vec![needed])]);
        let request = Request {
            package: "kite".into(),
            installed: installed.map(|name| Installed {
                name: name.into(),
                version: "1.0.0".into(),
                catalog: None,
            }),
            ..Request::default()
        };
        let mut report = ResolveReport::new(request, &[catalog], None);
        let source = SourceArgs {
            dir: vec![".".into()],
            ..SourceArgs::default()
        };
        report.check_dependencies(&source, None).await.unwrap();
        report
    }

    #[tokio::test]
    async fn a_dependency_that_cannot_be_read_is_a_negative_answer() {
        let sentence =
            "bundle \"kite.v1.0.0\" has a dependency that cannot be read: property olm.package.required";
        let unreadable = offline("no range", None).await;
        assert!(!unreadable.is_positive());
        let text = unreadable.text(Style::plain());
        assert!(text.contains(&format!("Unmet      {sentence}")), "{text}");
        let warning = unreadable.unreadable_dependency().unwrap();
        assert!(
            warning.starts_with(sentence) && warning.ends_with("operator-controller does not install it"),
            "{warning}"
        );
        let readable = offline(">=1.0.0", None).await;
        assert!(readable.is_positive() && readable.unmet.is_none());
        assert_eq!(readable.unreadable_dependency(), None);
        let installed = offline("no range", Some("kite.v1.0.0")).await;
        assert!(installed.is_positive(), "the controller does not check it again");
        assert_eq!(installed.unreadable_dependency(), None);
    }
}
