//! Page of a question to the resolver: what if the range, the channels or the policy were others?

use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use super::tables::{choice, read};
use super::views::ChoiceView;
use crate::layout::{Medium, Place, page};

/// Longest text of a field, in characters.
const FIELD: &str = "1024";

/// Request to the resolver as people write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// Name of the package.
    pub package: String,
    /// Installed bundle: a version, a name, or `NAME@VERSION`; empty for none.
    pub installed: String,
    /// Version range; empty for any version.
    pub range: String,
    /// Channels, separated by commas; empty for all.
    pub channels: String,
    /// True for the policy `SelfCertified`.
    pub self_certified: bool,
}

impl WhatIf {
    /// Returns the request as the query of an address.
    pub fn query(&self) -> String {
        let policy = if self.self_certified {
            "SelfCertified"
        } else {
            "CatalogProvided"
        };
        Serializer::new(String::new())
            .extend_pairs([
                ("package", self.package.as_str()),
                ("installed", &self.installed),
                ("range", &self.range),
                ("channels", &self.channels),
                ("policy", policy),
            ])
            .finish()
    }
}

/// Returns the page: the request as a form, and the answer if there is a request.
pub fn what_if_page(request: &WhatIf, answer: Option<&Result<ChoiceView, String>>) -> Markup {
    let fields = [
        ("package", "Package", &request.package, "kite", true),
        (
            "installed",
            "Installed version or bundle",
            &request.installed,
            "1.0.0",
            false,
        ),
        ("range", "Version range", &request.range, ">=1.0.0 <2.0.0", false),
        (
            "channels",
            "Channels, separated by commas",
            &request.channels,
            "stable",
            false,
        ),
    ];
    let content = html! {
        h1 { "What if" }
        p { "Which bundle would the resolver choose? Nothing is changed." }
        form action="what-if.html" method="get" class="question" {
            @for (name, label, value, example, required) in fields {
                p {
                    label for=(name) { (label) }
                    input id=(name) name=(name) value=(value) placeholder=(example) maxlength=(FIELD) required[required]
                        autocomplete="off" spellcheck="false";
                }
            }
            p {
                label for="policy" { "Upgrade constraint policy" }
                select id="policy" name="policy" {
                    option value="CatalogProvided" selected[!request.self_certified] { "CatalogProvided: only successors" }
                    option value="SelfCertified" selected[request.self_certified] { "SelfCertified: any version" }
                }
            }
            p { button type="submit" { "Ask" } }
        }
        @if let Some(answer) = answer {
            section aria-labelledby="answer" {
                h2 id="answer" { "Answer" }
                (read(answer, choice))
            }
        }
    };
    page(Medium::Live, Place::WhatIf, "What if", &content)
}
