//! Page of the keywords: an index that needs no script and no server.

use std::collections::BTreeMap;

use maud::{Markup, html};
use olm_text::counted;

use crate::layout::{Medium, Place, page};
use crate::packages::title;
use crate::paths::package_path;
use crate::search::{Hit, Search};
use crate::text::shown;

/// Maximum number of keywords: those of the most packages.
const KEYWORDS: usize = 1000;
/// Maximum number of packages of a keyword.
const PACKAGES: usize = 20;
/// Longest keyword, in bytes; longer ones are sentences.
const LENGTH: usize = 40;

/// Returns the page of the keywords of `hits`, each with its packages as a search finds them.
pub(crate) fn keywords_page(search: &Search<'_>, hits: &[Hit<'_>]) -> Markup {
    let entries: Vec<(String, Vec<Hit<'_>>)> = keywords(hits)
        .into_iter()
        .map(|keyword| {
            let found = search.find(&keyword);
            (keyword, found)
        })
        .collect();
    let content = html! {
        h1 { "Keywords" }
        p { (counted(entries.len(), "keyword")) ", each with its packages, best match first." }
        dl class="keywords" {
            @for (keyword, found) in &entries {
                dt { (shown(keyword)) }
                dd {
                    ul {
                        @for hit in found.iter().take(PACKAGES) {
                            li { a href=(package_path(hit.catalog, &hit.package.listing.name)) { (title(hit.package)) } }
                        }
                        @if found.len() > PACKAGES { li { "and " (found.len() - PACKAGES) " more" } }
                    }
                }
            }
        }
    };
    page(Medium::Site, Place::Keywords, "Keywords", &content)
}

/// Returns the keywords of most packages, by name.
fn keywords(hits: &[Hit<'_>]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for hit in hits {
        for keyword in &hit.package.listing.keywords {
            let keyword = keyword.trim().to_lowercase();
            if !keyword.is_empty() && keyword.len() <= LENGTH {
                *counts.entry(keyword).or_default() += 1;
            }
        }
    }
    let mut ranked: Vec<(String, usize)> = counts.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    ranked.truncate(KEYWORDS);
    let mut keywords: Vec<String> = ranked.into_iter().map(|(keyword, _)| keyword).collect();
    keywords.sort();
    keywords
}
