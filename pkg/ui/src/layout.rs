//! Frame of every page: head, navigation, main part, foot.

use maud::{DOCTYPE, Markup, html};

use crate::text::shown;

/// Content security policy of the pages: nothing but this site's style and images, no script, no form.
pub const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";

/// The style of every page, for light and dark screens and for paper.
pub const STYLE: &str = include_str!("style.css");

/// Place of a page in the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Packages,
    Keywords,
    Catalogs,
    /// A package, two folders below the root.
    Package,
}

impl Place {
    /// Returns the way from the page to the root of the site.
    pub(crate) fn root(self) -> &'static str {
        match self {
            Self::Packages | Self::Keywords | Self::Catalogs => "",
            Self::Package => "../../",
        }
    }
}

/// Returns a whole page.
pub(crate) fn page(place: Place, title: &str, content: &Markup) -> Markup {
    let root = place.root();
    let links = [
        (Place::Packages, "index.html", "Packages"),
        (Place::Keywords, "keywords.html", "Keywords"),
        (Place::Catalogs, "catalogs.html", "Catalogs"),
    ];
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (shown(title)) }
                link rel="stylesheet" href={ (root) "style.css" };
            }
            body {
                a class="skip" href="#main" { "Skip to content" }
                header {
                    nav aria-label="Site" {
                        ul {
                            @for (target, file, text) in links {
                                li {
                                    @if target == place {
                                        a href={ (root) (file) } aria-current="page" { (text) }
                                    } @else {
                                        a href={ (root) (file) } { (text) }
                                    }
                                }
                            }
                        }
                    }
                }
                main id="main" { (content) }
            }
        }
    }
}

/// Returns a table that scrolls in its own frame on narrow screens.
pub(crate) fn table(caption: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { (rows) }
            }
        }
    }
}
