//! A question to the resolver, and its answer in both forms.

use std::fmt::Write as _;

use olm_resolve::{
    CatalogInput, Change, Installed, Request, Resolution, ResolveError, constraint, resolve, suggest,
};
use serde_json::{Value, json};

use crate::absent::Absent;
use crate::cli::{Policy, SourceArgs, WishArgs};
use crate::failure::Failure;
use crate::installed;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::clean;

/// Request and its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The question.
    pub(crate) request: Request,
    /// The answer.
    pub(crate) answer: Result<Resolution, ResolveError>,
    /// The smallest change that gives what is wanted; empty when nothing has to change, none when no change
    /// of the spec is enough.
    pub(crate) suggestion: Option<Vec<Change>>,
    /// The version or bundle hoped for that none of the catalogs has, and the nearest ones that are there.
    pub(crate) absent: Option<Absent>,
    /// Dependencies of the chosen bundle that the cluster does not meet; none if no cluster was asked or nothing is required.
    pub(crate) unmet: Option<Vec<String>>,
}

/// The request that the flags put.
///
/// # Errors
/// What is installed cannot be told.
pub(crate) fn request(package: &str, wish: &WishArgs, catalogs: &[CatalogInput]) -> Result<Request, Failure> {
    let installed = wish
        .installed
        .as_deref()
        .map(|text| installed::read(text, catalogs));
    Ok(Request {
        package: package.to_owned(),
        version: wish.range.clone().filter(|range| !range.is_empty()),
        channels: wish.channels.clone(),
        self_certified: wish.policy == Policy::SelfCertified,
        installed: installed.transpose()?,
        release_support: wish.release_support,
        selection: wish.selection(),
        similar: Vec::new(),
    })
}

impl Asked {
    /// Asks the resolver; `want` is the version or bundle hoped for.
    pub(crate) fn new(request: Request, catalogs: &[CatalogInput], want: Option<&str>) -> Self {
        let answer = resolve(&request, catalogs);
        let absent = want.and_then(|want| Absent::new(want, catalogs));
        let suggestion = match (&answer, want) {
            (Ok(_), None) => Some(Vec::new()),
            _ => suggest(&request, catalogs, want),
        };
        Self {
            request,
            answer,
            suggestion,
            absent,
            unmet: None,
        }
    }

    /// Looks on the cluster for what the chosen bundle needs, where the question is about a cluster; `extension` asks it.
    /// What is installed already needs nothing more.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub(crate) async fn look_for_needs(
        &mut self,
        source: &SourceArgs,
        extension: Option<&str>,
    ) -> Result<(), Failure> {
        let Ok(found) = &self.answer else { return Ok(()) };
        let installed = self.request.installed.as_ref();
        if source.is_offline() || installed.is_some_and(|installed| installed.name == found.bundle) {
            return Ok(());
        }
        let cluster = Cluster::connect(&source.access).await?;
        let unmet = cluster.unmet(&found.properties, extension).await?;
        self.unmet = unmet.map(|unmet| unmet.into_iter().map(|unmet| unmet.text).collect());
        Ok(())
    }

    /// Returns true if the answer is a bundle whose dependencies are met.
    pub(crate) fn is_positive(&self) -> bool {
        self.answer.is_ok() && self.unmet.as_ref().is_none_or(Vec::is_empty)
    }

    /// The answer as a value: question, resolution or error, suggestion.
    pub(crate) fn value(&self) -> Value {
        let request = &self.request;
        let mut value = json!({
            "request": {
                "package": request.package,
                "version": request.version,
                "channels": request.channels,
                "upgradeConstraintPolicy": if request.self_certified { "SelfCertified" } else { "CatalogProvided" },
                "installed": request.installed.as_ref().map(installed_value),
            },
            "suggestion": self.suggestion,
        });
        let (key, answer) = match &self.answer {
            Ok(found) => ("resolution", resolution_value(found)),
            Err(error) => ("error", Failure::No(error.to_string()).value()["error"].take()),
        };
        if let Some(map) = value.as_object_mut() {
            map.insert(key.to_owned(), answer);
            if let Some(absent) = &self.absent {
                map.insert(
                    "absent".to_owned(),
                    json!({"want": absent.want, "nearest": absent.nearest}),
                );
            }
            if let Some(unmet) = &self.unmet {
                map.insert("unmet".to_owned(), json!(unmet));
            }
        }
        value
    }

    /// The answer as lines.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut text = String::new();
        let mut line = |paint, name: &str, value: &str| {
            let _ = writeln!(text, "{name:<11}{}", style.paint(paint, &clean(value)));
        };
        line(Paint::Plain, "Package", &self.request.package);
        if let Some(installed) = &self.request.installed {
            line(Paint::Plain, "Installed", &installed_text(installed));
        }
        if let Some(range) = &self.request.version {
            line(Paint::Plain, "Range", range);
        }
        if !self.request.channels.is_empty() {
            line(Paint::Plain, "Channels", &self.request.channels.join(", "));
        }
        match &self.answer {
            Ok(found) => {
                line(Paint::Good, "Bundle", &found.bundle);
                line(Paint::Good, "Version", &found.version.to_string());
                line(Paint::Plain, "Catalog", &found.catalog);
                line(Paint::Plain, "Image", &found.image);
                for need in needs(found) {
                    line(Paint::Warn, "Needs", &need);
                }
                match self.unmet.as_deref() {
                    None => {}
                    Some([]) => line(Paint::Good, "Met", "all that it needs is there"),
                    Some(unmet) => {
                        for text in unmet {
                            line(Paint::Bad, "Unmet", text);
                        }
                    }
                }
                for message in deprecations(found) {
                    line(Paint::Warn, "Deprecated", &message);
                }
                for (catalog, reason) in &found.left_out {
                    line(Paint::Warn, "Left out", &format!("catalog {catalog}: {reason}"));
                }
            }
            Err(error) => line(Paint::Bad, "No bundle", &error.to_string()),
        }
        text
    }

    /// The suggestion as lines; empty when there is nothing to say.
    pub(crate) fn suggestion_text(&self, want: Option<&str>, style: Style) -> String {
        let goal = match want {
            Some(want) => format!("To get {}", clean(want)),
            None => "To get a bundle".to_owned(),
        };
        let said = match &self.answer {
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
                None => format!("{goal}: no change of the spec is enough.\n"),
            },
        }
    }
}

/// Lists the bundle's dependencies. Only a cluster can tell if they are met.
fn needs(found: &Resolution) -> Vec<String> {
    match constraint::parse(&found.properties) {
        Ok(needs) => needs.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!(
            "what cannot be read, so that it is not installed: {error}"
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
    if let Some(message) = found.deprecation.bundles.get(&found.bundle) {
        lines.push(format!("bundle: {message}"));
    }
    lines
}

/// `NAME (VERSION)`.
pub(crate) fn installed_text(installed: &Installed) -> String {
    match &installed.catalog {
        Some(catalog) => format!(
            "{} ({}) from catalog {catalog}",
            installed.name, installed.version
        ),
        None => format!("{} ({})", installed.name, installed.version),
    }
}

fn installed_value(installed: &Installed) -> Value {
    json!({
        "name": installed.name,
        "version": installed.version,
        "release": installed.release,
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
        "needs": needs(found),
    })
}
