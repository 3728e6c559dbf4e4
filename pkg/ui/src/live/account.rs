//! Pages about the reader: the form that takes a token, and who the reader is.

use maud::{Markup, html};

use super::tables::{facts, long, read, table};
use super::views::{Fact, TableView};
use crate::layout::{Medium, Place, page};

/// Longest token, in characters.
const TOKEN: &str = "16384";

/// The reader with the rights that the pages need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// Name and groups.
    pub user: Result<Vec<Fact>, String>,
    /// The rights.
    pub rights: TableView,
    /// True if the reader came by a session that can be ended.
    pub signs_out: bool,
}

/// Returns the page about the reader.
pub fn account_page(view: &AccountView) -> Markup {
    let content = html! {
        h1 { "Account" }
        p { "These pages show what the API server shows to you." }
        (read(&view.user, |user| facts(user)))
        @if view.signs_out {
            form action="/sign-out" method="post" { p { button type="submit" { "Sign out" } } }
        }
        h2 { "What you may read" }
        p { "A part of a page that needs a missing right says so. The content of each catalog is asked for separately." }
        (table(&view.rights, ""))
    };
    page(Medium::Live, Place::Account, "Account", &content)
}

/// Returns the page with the form that takes a token. `value` is the random value of the form; `message` says why a former attempt
/// failed.
pub fn sign_in_page(value: &str, message: &str) -> Markup {
    let content = html! {
        h1 { "Sign in" }
        @if !message.is_empty() { p class="notice" role="alert" { (long(message)) } }
        p { "These pages show what the API server shows to the bearer of your token. The token stays in the memory of the server until you \
             sign out, at most eight hours." }
        form action="/sign-in" method="post" autocomplete="off" {
            input type="hidden" name="form" value=(value);
            p {
                label for="token" { "Token " }
                input id="token" name="token" type="password" required maxlength=(TOKEN) autocomplete="off" spellcheck="false"
                    aria-describedby="how";
                " " button type="submit" { "Sign in" }
            }
        }
        p id="how" { "A token of a service account, for an hour:" }
        pre class="copy" { code { "kubectl create token NAME --namespace NAMESPACE --duration 1h" } }
        p { "You have signed in already, and a link of another site has led you here? " a href="/extensions.html" { "Open the extensions" } "." }
    };
    page(Medium::Live, Place::Other, "Sign in", &content)
}
