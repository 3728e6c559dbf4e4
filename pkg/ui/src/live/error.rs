//! Page of an error.

use maud::{Markup, html};

use super::tables::long;
use crate::layout::{Medium, Place, page};

/// Returns the page of a request that has no other answer; `message` says what is wrong, and what helps.
pub fn error_page(title: &str, message: &str) -> Markup {
    let content = html! {
        h1 { (title) }
        p class="notice" { (long(message)) }
        p { a href="/extensions.html" { "To the extensions" } }
    };
    page(Medium::Live, Place::Other, title, &content)
}
