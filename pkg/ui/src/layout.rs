//! Frame of every page: head, navigation, main part, foot.

use maud::{DOCTYPE, Markup, html};

use crate::text::shown;

/// Content security policy of a site: nothing but its own style and images, no script, no form.
pub const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";

/// Content security policy of live pages: besides, the server's one script, which reads from the server alone, and forms to it.
pub const LIVE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'self'";

/// The style of every page, for light and dark screens and for paper.
pub const STYLE: &str = include_str!("style.css");

/// The icon of every page.
pub const ICON: &str = include_str!("icon.svg");

/// The script of live pages. Every page can be read and used without it.
pub const SCRIPT: &str = include_str!("live/ui.js");

/// Medium in which pages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Static files about catalogs.
    Site,
    /// A server that reads a cluster with the rights of its user.
    Live,
}

/// Place of a page among the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Extensions,
    Packages,
    Keywords,
    Catalogs,
    WhatIf,
    ClusterUpgrade,
    Account,
    /// An extension, a folder below the root.
    Extension,
    /// A plan, a folder below the root. It is not renewed: it is made by dry runs.
    Plan,
    /// A package, two folders below the root.
    Package,
    /// A page of no place, such as that of an error.
    Other,
}

impl Medium {
    /// Returns the pages of the navigation: place, file and text.
    fn navigation(self) -> &'static [(Place, &'static str, &'static str)] {
        match self {
            Self::Site => &[
                (Place::Packages, "index.html", "Packages"),
                (Place::Keywords, "keywords.html", "Keywords"),
                (Place::Catalogs, "catalogs.html", "Catalogs"),
            ],
            Self::Live => &[
                (Place::Extensions, "extensions.html", "Extensions"),
                (Place::Packages, "index.html", "Packages"),
                (Place::Catalogs, "catalogs.html", "Catalogs"),
                (Place::WhatIf, "what-if.html", "What if"),
                (Place::ClusterUpgrade, "cluster-upgrade.html", "Cluster upgrade"),
                (Place::Account, "account.html", "Account"),
            ],
        }
    }

    fn policy(self) -> &'static str {
        match self {
            Self::Site => POLICY,
            Self::Live => LIVE_POLICY,
        }
    }
}

impl Place {
    /// Returns the way from the page to the root.
    pub(crate) fn root(self) -> &'static str {
        match self {
            Self::Extension | Self::Plan => "../",
            Self::Package => "../../",
            Self::Other => "/",
            _ => "",
        }
    }

    /// Returns true if the page shows a state that changes while somebody looks at it.
    fn is_watched(self) -> bool {
        matches!(self, Self::Extensions | Self::Extension)
    }
}

/// Returns a whole page.
pub(crate) fn page(medium: Medium, place: Place, title: &str, content: &Markup) -> Markup {
    let root = place.root();
    let is_live = medium == Medium::Live;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(medium.policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (shown(title)) }
                link rel="icon" type="image/svg+xml" href={ (root) "icon.svg" };
                link rel="stylesheet" href={ (root) "style.css" };
                @if is_live { script src={ (root) "ui.js" } defer {} }
            }
            body data-root=[is_live.then_some(root)] {
                a class="skip" href="#main" { "Skip to content" }
                header {
                    nav aria-label="Site" {
                        ul {
                            @for (target, file, text) in medium.navigation() {
                                li {
                                    @if *target == place {
                                        a href={ (root) (file) } aria-current="page" { (text) }
                                    } @else {
                                        a href={ (root) (file) } { (text) }
                                    }
                                }
                            }
                        }
                    }
                }
                @if is_live && place.is_watched() {
                    p id="live" role="status" { "Reload the page to see changes." }
                }
                main id="main" data-watched[is_live && place.is_watched()] { (content) }
            }
        }
    }
}

/// Returns a table that scrolls in its own frame on narrow screens.
pub(crate) fn table<S: AsRef<str>>(caption: &str, heads: &[S], rows: &Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead { tr { @for head in heads { th scope="col" { (head.as_ref()) } } } }
                tbody { (rows) }
            }
        }
    }
}
