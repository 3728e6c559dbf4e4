//! Everything that is known for one resolution, and the choice between catalogs.

use crate::candidates::{Candidate, Judged, Question};
use crate::{CatalogInput, CatalogLookup, Request, Selection, Trouble};
use olm_version::go_quote;

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
pub(crate) struct Choice {
    /// Position in [`Field::judged`].
    pub(crate) winner: usize,
    /// The one whose deprecations are shown.
    pub(crate) deprecation: usize,
}

impl<'a> Field<'a> {
    pub(crate) fn new(question: &Question<'_>, catalogs: &[&'a CatalogInput]) -> Result<Self, Trouble> {
        let upstream = question.request.selection == Selection::Upstream;
        let mut field = Self {
            judged: Vec::new(),
            without: Vec::new(),
            unread: Vec::new(),
        };
        for &catalog in catalogs {
            let reason = match &catalog.lookup {
                CatalogLookup::Found(content) if !content.is_empty() => {
                    let from = question.from()?;
                    field
                        .judged
                        .push(Judged::new(question, from.as_ref(), catalog, content));
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

    pub(crate) fn choose(&self, request: &Request) -> Result<Choice, Trouble> {
        match request.selection {
            Selection::Ours => self.choose_ours(request),
            Selection::Upstream => self.choose_upstream(request),
        }
    }

    /// Catalogs that offer a bundle, with it, in the order given.
    fn offers(&self) -> impl Iterator<Item = (usize, &Judged<'a>, &Candidate<'a>)> {
        self.judged
            .iter()
            .enumerate()
            .filter_map(|(at, judged)| Some((at, judged, judged.best()?)))
    }

    /// Priority decides, then deprecation; what could not be read must not be able to change the choice.
    fn choose_ours(&self, request: &Request) -> Result<Choice, Trouble> {
        let waiting = |unread: &Unread<'_>| unread.trouble(&request.package);
        let top = self.offers().map(|(_, judged, _)| judged.catalog.priority).max();
        let Some(top) = top else {
            return Err(self.unread.first().map_or_else(|| not_one(request, &[]), waiting));
        };
        let mut first: Vec<_> = self
            .offers()
            .filter(|(_, judged, _)| judged.catalog.priority == top)
            .collect();
        if first.iter().any(|(.., best)| !best.deprecated) {
            first.retain(|(.., best)| !best.deprecated);
        }
        let winner = match first.as_slice() {
            [(winner, judged, _)] => Ok((*winner, judged.name())),
            several => Err(several.iter().any(|(.., best)| best.deprecated)),
        };
        let installed_from = request
            .installed
            .as_ref()
            .and_then(|installed| installed.catalog.as_deref());
        let settled = winner.is_ok_and(|(_, name)| Some(name) == installed_from);
        let rival = self.unread.iter().find(|unread| unread.catalog.priority >= top);
        if let Some(rival) = rival.filter(|_| !settled) {
            return Err(waiting(rival));
        }
        match winner {
            Ok((winner, _)) => Ok(Choice {
                winner,
                deprecation: winner,
            }),
            Err(deprecated) => {
                let equals = self.offers().filter(|(.., best)| best.deprecated == deprecated);
                Err(not_one(
                    request,
                    &equals.map(|(_, judged, _)| judged.name()).collect::<Vec<_>>(),
                ))
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
        let first: Vec<_> = kept
            .iter()
            .filter(|(_, judged, _)| Some(judged.catalog.priority) == top)
            .collect();
        match first.as_slice() {
            [(winner, ..)] => Ok(Choice {
                winner: *winner,
                deprecation,
            }),
            _ => Err(not_one(
                request,
                &kept
                    .iter()
                    .map(|(_, judged, _)| judged.name())
                    .collect::<Vec<_>>(),
            )),
        }
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

/// Upstream's sentence for no bundle, or for several.
pub(crate) fn not_one(request: &Request, tied: &[&str]) -> Trouble {
    let upgrading = request.installed.as_ref().map(|installed| {
        format!(
            "error upgrading from currently installed version {}: ",
            go_quote(&installed.version)
        )
    });
    let found = if tied.is_empty() {
        "no bundles found"
    } else {
        "found bundles"
    };
    let range = request.version.as_deref().filter(|range| !range.is_empty());
    let matching = range.map(|range| format!(" matching version {}", go_quote(range)));
    let channels = &request.channels;
    let within = (!channels.is_empty()).then(|| format!(" in channels [{}]", channels.join(" ")));
    let mut names: Vec<String> = tied.iter().map(|&name| name.to_owned()).collect();
    names.sort();
    let several = (!names.is_empty()).then(|| {
        format!(
            " in multiple catalogs with the same priority [{}]",
            names.join(" ")
        )
    });
    let sentence = format!(
        "{}{found} for package {}{}{}{}",
        upgrading.unwrap_or_default(),
        go_quote(&request.package),
        matching.unwrap_or_default(),
        within.unwrap_or_default(),
        several.unwrap_or_default(),
    );
    Trouble::NotOne {
        sentence,
        tied: names,
    }
}
