//! The choice between catalogs.

use crate::candidates::{Candidate, Judged, Question};
use crate::{
    CatalogExplanation, CatalogInput, CatalogLookup, CatalogOutcome, DeprecationInfo, Explanation, Request,
    Resolution, ResolveError, Rule, Selection, Trouble, hint,
};
use olm_version::go_quote;
use std::cmp::Reverse;

/// Properties by which a bundle says that it needs something that nothing here provides.
const DEPENDENCIES: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];

/// Chooses the bundle for `request` from `catalogs`.
///
/// With [`Selection::Ours`] the answer does not depend on the order of `catalogs`.
///
/// # Errors
/// [`ResolveError`] when there is no bundle, more than one, or not enough known to choose.
pub fn resolve(request: &Request, catalogs: &[CatalogInput]) -> Result<Resolution, ResolveError> {
    let mut ordered: Vec<&CatalogInput> = catalogs.iter().collect();
    if request.selection == Selection::Ours {
        ordered.sort_by_key(|catalog| (Reverse(catalog.priority), &catalog.name));
    }
    let question = Question::new(request).map_err(ResolveError::bare)?;
    let field = Field::new(&question, &ordered).map_err(ResolveError::bare)?;
    match field.choose(request) {
        Ok(choice) => field.resolution(request, &choice),
        Err(trouble) => {
            let hint = hint::sentence(request, &field, &trouble);
            Err(ResolveError { hint, explanation: field.explanation(&trouble_outcomes(&trouble)), trouble })
        }
    }
}

/// A catalog that nobody could read.
pub(crate) struct Unread<'a> {
    pub(crate) catalog: &'a CatalogInput,
    pub(crate) reason: String,
}

/// Everything that is known for one resolution.
pub(crate) struct Field<'a> {
    /// Catalogs that have the package.
    pub(crate) judged: Vec<Judged<'a>>,
    /// Catalogs that do not have it.
    pub(crate) without: Vec<&'a CatalogInput>,
    /// Catalogs that could not be read.
    pub(crate) unread: Vec<Unread<'a>>,
}

/// The winner among the catalogs.
struct Choice {
    /// Position in [`Field::judged`].
    winner: usize,
    /// The one whose deprecations are shown.
    deprecation: usize,
}

impl<'a> Field<'a> {
    fn new(question: &Question<'_>, catalogs: &[&'a CatalogInput]) -> Result<Self, Trouble> {
        let upstream = question.request.selection == Selection::Upstream;
        let mut field = Self { judged: Vec::new(), without: Vec::new(), unread: Vec::new() };
        for &catalog in catalogs {
            let reason = match &catalog.lookup {
                CatalogLookup::Found(content) if !content.is_empty() => {
                    let from = question.from()?;
                    field.judged.push(Judged::new(question, from.as_ref(), catalog, content));
                    continue;
                }
                CatalogLookup::Found(_) | CatalogLookup::NoSuchPackage => {
                    field.without.push(catalog);
                    continue;
                }
                CatalogLookup::NotServing => {
                    format!("catalog {} is not being served", go_quote(&catalog.name))
                }
                CatalogLookup::Failed(reason) => reason.clone(),
            };
            let unread = Unread { catalog, reason };
            if upstream {
                return Err(unread.trouble(&question.request.package));
            }
            field.unread.push(unread);
        }
        Ok(field)
    }

    fn choose(&self, request: &Request) -> Result<Choice, Trouble> {
        match request.selection {
            Selection::Ours => self.choose_ours(request),
            Selection::Upstream => self.choose_upstream(request),
        }
    }

    /// Catalogs that offer a bundle, with it, in the order given.
    fn offers(&self) -> impl Iterator<Item = (usize, &Judged<'a>, &Candidate<'a>)> {
        self.judged.iter().enumerate().filter_map(|(at, judged)| Some((at, judged, judged.best()?)))
    }

    /// Priority decides, then deprecation; what could not be read must not be able to change the choice.
    fn choose_ours(&self, request: &Request) -> Result<Choice, Trouble> {
        let waiting = |unread: &Unread<'_>| unread.trouble(&request.package);
        let top = self.offers().map(|(_, judged, _)| judged.catalog.priority).max();
        let Some(top) = top else {
            return Err(self.unread.first().map_or_else(|| not_one(request, &[]), waiting));
        };
        let mut first: Vec<_> =
            self.offers().filter(|(_, judged, _)| judged.catalog.priority == top).collect();
        if first.iter().any(|(.., best)| !best.deprecated) {
            first.retain(|(.., best)| !best.deprecated);
        }
        let winner = match first.as_slice() {
            [(winner, judged, _)] => Ok((*winner, judged.catalog.name.as_str())),
            several => Err(several.iter().any(|(.., best)| best.deprecated)),
        };
        let installed_from = request.installed.as_ref().and_then(|installed| installed.catalog.as_deref());
        let settled = winner.is_ok_and(|(_, name)| Some(name) == installed_from);
        let rival = self.unread.iter().find(|unread| unread.catalog.priority >= top);
        if let Some(rival) = rival.filter(|_| !settled) {
            return Err(waiting(rival));
        }
        match winner {
            Ok((winner, _)) => Ok(Choice { winner, deprecation: winner }),
            Err(deprecated) => {
                let equals = self.offers().filter(|(.., best)| best.deprecated == deprecated);
                let names: Vec<_> = equals.map(|(_, judged, _)| judged.catalog.name.as_str()).collect();
                Err(not_one(request, &names))
            }
        }
    }

    /// Deprecation decides while walking, then priority; the last catalog that had an offer lends its
    /// deprecations.
    fn choose_upstream(&self, request: &Request) -> Result<Choice, Trouble> {
        let mut kept: Vec<(usize, &Judged<'a>, &Candidate<'a>)> = Vec::new();
        let mut deprecation = 0;
        for offer in self.offers() {
            let (at, _, best) = offer;
            if let Some((.., before)) = kept.last() {
                if best.deprecated && !before.deprecated {
                    continue;
                }
                if !best.deprecated {
                    kept.retain(|(.., kept)| !kept.deprecated);
                }
            }
            deprecation = at;
            kept.push(offer);
        }
        let top = kept.iter().map(|(_, judged, _)| judged.catalog.priority).max();
        let first: Vec<_> = kept.iter().filter(|(_, judged, _)| Some(judged.catalog.priority) == top).collect();
        match first.as_slice() {
            [(winner, ..)] => Ok(Choice { winner: *winner, deprecation }),
            _ => {
                let names: Vec<_> = kept.iter().map(|(_, judged, _)| judged.catalog.name.as_str()).collect();
                Err(not_one(request, &names))
            }
        }
    }

    fn resolution(&self, request: &Request, choice: &Choice) -> Result<Resolution, ResolveError> {
        let found = self.judged.get(choice.winner).and_then(|judged| Some((judged, judged.best()?)));
        let Some((judged, best)) = found else {
            return Err(ResolveError::bare(not_one(request, &[])));
        };
        let bundle = best.bundle;
        let catalog = judged.catalog.name.clone();
        let mut explanation = self.explanation(&Outcomes::Chosen { catalog: &catalog });
        let refuse = |trouble: Trouble, mut explanation: Explanation| {
            explanation.rule_out(&catalog, &bundle.name, Rule::Dependency);
            let hint = hint::sentence(request, self, &trouble);
            Err(ResolveError { trouble, hint, explanation })
        };
        let version = match &best.version {
            Ok(version) => version.clone(),
            Err(source) => {
                let trouble =
                    Trouble::BundleVersion { bundle: bundle.name.clone(), source: source.clone() };
                let hint = hint::sentence(request, self, &trouble);
                return Err(ResolveError { trouble, hint, explanation });
            }
        };
        let needs = bundle.properties.iter().find(|property| DEPENDENCIES.contains(&property.type_.as_str()));
        if let Some(property) = needs {
            let trouble =
                Trouble::Dependency { bundle: bundle.name.clone(), property: property.type_.clone() };
            return refuse(trouble, std::mem::take(&mut explanation));
        }
        let lender = self.judged.get(choice.deprecation).unwrap_or(judged);
        Ok(Resolution {
            bundle: bundle.name.clone(),
            image: bundle.image.clone(),
            version,
            properties: bundle.properties.clone(),
            deprecation: DeprecationInfo::of(lender.content),
            left_out: self
                .unread
                .iter()
                .map(|unread| (unread.catalog.name.clone(), unread.reason.clone()))
                .collect(),
            explanation,
            catalog,
        })
    }

    fn explanation(&self, outcomes: &Outcomes<'_>) -> Explanation {
        let entry = |catalog: &CatalogInput, outcome, candidates| CatalogExplanation {
            name: catalog.name.clone(),
            priority: catalog.priority,
            outcome,
            candidates,
        };
        let mut catalogs = Vec::new();
        for judged in &self.judged {
            let outcome = outcomes.of(&judged.catalog.name, judged.best());
            catalogs.push(entry(judged.catalog, outcome, judged.verdicts()));
        }
        for catalog in &self.without {
            catalogs.push(entry(catalog, CatalogOutcome::NoSuchPackage, Vec::new()));
        }
        for unread in &self.unread {
            let reason = unread.reason.clone();
            let outcome = match outcomes {
                Outcomes::Chosen { .. } => CatalogOutcome::LeftOut { reason },
                _ => CatalogOutcome::Waiting { reason },
            };
            catalogs.push(entry(unread.catalog, outcome, Vec::new()));
        }
        catalogs.sort_by(|a, b| (Reverse(a.priority), &a.name).cmp(&(Reverse(b.priority), &b.name)));
        Explanation { catalogs }
    }
}

impl Unread<'_> {
    fn trouble(&self, package: &str) -> Trouble {
        Trouble::Waiting {
            package: package.to_owned(),
            catalog: self.catalog.name.clone(),
            reason: self.reason.clone(),
        }
    }
}

/// What is to be said of the catalogs that have the package.
enum Outcomes<'a> {
    Chosen { catalog: &'a str },
    Tied { catalogs: &'a [String] },
    Undecided,
}

impl Outcomes<'_> {
    fn of(&self, name: &str, best: Option<&Candidate<'_>>) -> CatalogOutcome {
        let Some(best) = best else { return CatalogOutcome::NothingSuitable };
        let bundle = best.bundle.name.clone();
        match self {
            Self::Chosen { catalog } if *catalog == name => CatalogOutcome::Chosen { bundle },
            Self::Chosen { catalog } => CatalogOutcome::Outranked { bundle, by: (*catalog).to_owned() },
            Self::Tied { catalogs } => match catalogs.first() {
                Some(by) if !catalogs.iter().any(|tied| tied == name) => {
                    CatalogOutcome::Outranked { bundle, by: by.clone() }
                }
                _ => CatalogOutcome::Tied { bundle },
            },
            Self::Undecided => CatalogOutcome::Tied { bundle },
        }
    }
}

fn trouble_outcomes(trouble: &Trouble) -> Outcomes<'_> {
    match trouble {
        Trouble::NotOne { tied, .. } if !tied.is_empty() => Outcomes::Tied { catalogs: tied },
        _ => Outcomes::Undecided,
    }
}

/// Upstream's sentence for no bundle, or for several.
fn not_one(request: &Request, tied: &[&str]) -> Trouble {
    let mut sentence = String::new();
    if let Some(installed) = &request.installed {
        let version = go_quote(&installed.version);
        sentence.push_str(&format!("error upgrading from currently installed version {version}: "));
    }
    let found = if tied.is_empty() { "no bundles found" } else { "found bundles" };
    sentence.push_str(&format!("{found} for package {}", go_quote(&request.package)));
    if let Some(range) = request.version.as_deref().filter(|range| !range.is_empty()) {
        sentence.push_str(&format!(" matching version {}", go_quote(range)));
    }
    if !request.channels.is_empty() {
        sentence.push_str(&format!(" in channels [{}]", request.channels.join(" ")));
    }
    let mut names: Vec<String> = tied.iter().map(|&name| name.to_owned()).collect();
    names.sort();
    if !names.is_empty() {
        sentence.push_str(&format!(" in multiple catalogs with the same priority [{}]", names.join(" ")));
    }
    Trouble::NotOne { sentence, tied: names }
}
